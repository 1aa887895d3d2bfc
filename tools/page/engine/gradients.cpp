#include "tools/page/engine/gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "experiments/frame/tensor_files/element_reader.h"
#include "experiments/frame/tensor_files/npy.h"
#include "experiments/frame/tensor_files/safetensors.h"
#include "fp16/exponent_histogram.h"
#include "tools/halflab/elements.h"
#include "tools/page/engine/answer.h"

namespace halflab::page {
namespace {

namespace files = experiments::tensor_files;
using fp16::ExponentHistogram;
using Json = nlohmann::ordered_json;

constexpr int lowest_octave = ExponentHistogram::min_exponent,
              highest_octave = ExponentHistogram::max_exponent;
/// Scales for which what the histogram says is exact.
constexpr int least_scale_log2 = -112, greatest_scale_log2 = 123;

/// Values by exponent, and the squares of each octave.
struct Counts {
  ExponentHistogram exponents = {};
  std::array<double, highest_octave - lowest_octave + 1> squares = {};

  double& square(int octave) { return squares[static_cast<std::size_t>(octave - lowest_octave)]; }
  double square(int octave) const { return squares[static_cast<std::size_t>(octave - lowest_octave)]; }

  template <class Real>
  void add(std::span<const Real> values) {
    exponents.add(values);
    for (const Real value : values) {
      if (value == 0 || !std::isfinite(value)) continue;
      square(std::clamp(std::ilogb(value), lowest_octave, highest_octave)) +=
          static_cast<double>(value) * value;
    }
  }

  Counts& operator+=(const Counts& other) {
    exponents += other.exponents;
    for (std::size_t i = 0; i < squares.size(); ++i) squares[i] += other.squares[i];
    return *this;
  }
};

std::map<int, Counts>& kept() {
  static std::map<int, Counts> counts;
  return counts;
}

int keep(Counts counts) {
  const int number = kept().empty() ? 0 : kept().rbegin()->first + 1;
  kept()[number] = std::move(counts);
  return number;
}

const Counts& counts_of(int number) {
  const auto found = kept().find(number);
  if (found == kept().end()) throw std::invalid_argument("there are no counts " + std::to_string(number));
  return found->second;
}

Counts recorded(const Json& record) {
  std::vector<ExponentHistogram::Octave> octaves;
  Counts counts;
  const int lowest = record.at("lowest");
  for (const Json& row : record.at("octaves")) {
    const int octave = lowest + static_cast<int>(octaves.size());
    octaves.push_back(
        {.total = row.at(0), .powers_of_two = row.at(1), .near_next = row.at(2), .top = row.at(3)});
    if (octave >= lowest_octave && octave <= highest_octave) counts.square(octave) = row.at(4);
  }
  counts.exponents = ExponentHistogram(
      lowest, octaves,
      {.zero = record.at("zeros"), .nan = record.at("nonfinite"), .max_abs = record.at("largest")});
  return counts;
}

Counts count(const files::StoredTensor& tensor) {
  Counts counts;
  for (const files::Piece& piece : files::pieces_of(tensor)) {
    read_numbers(piece,
                 {.floats = [&](std::span<const float> values, std::uint64_t) { counts.add(values); },
                  .doubles = [&](std::span<const double> values, std::uint64_t) { counts.add(values); }});
  }
  return counts;
}

files::Contents parse(const std::string& name, files::Bytes bytes) {
  const std::filesystem::path file(name);
  if (file.extension().string() == ".npy") return files::parse_npy(bytes, file, {});
  if (file.extension().string() == ".safetensors") return files::parse_safetensors(bytes, file, {});
  files::refuse(file, "is not read here; allowed: .npy and .safetensors");
}

Json of(int number, const std::string& name, const std::string& shape, const std::string& format) {
  return {{"number", number}, {"name", name}, {"shape", shape}, {"format", format}};
}

Json count_file(const std::string& name, files::Bytes bytes) {
  const files::Contents contents = parse(name, bytes);
  Counts sum;
  std::vector<std::pair<const files::StoredTensor*, Counts>> counted;
  for (const files::StoredTensor& tensor : contents.tensors) {
    if (!tensor.is_floating_point() || tensor.elements == 0) continue;
    counted.emplace_back(&tensor, count(tensor));
    sum += counted.back().second;
  }
  if (counted.empty()) files::refuse(name, "has no tensor of floating-point numbers");
  Json rows = Json::array();
  if (counted.size() > 1) rows.push_back(of(keep(sum), "", "", ""));
  for (auto& [tensor, counts] : counted)
    rows.push_back(of(keep(std::move(counts)), tensor->name, files::text_of(tensor->shape),
                      std::string(tensor->type->format)));
  return rows;
}

Json drawn(const Counts& counts) {
  const ExponentHistogram& exponents = counts.exponents;
  Json octaves = Json::array();
  const int lowest = exponents.lowest_exponent().value_or(0);
  for (int octave = lowest; octave <= exponents.highest_exponent().value_or(lowest - 1); ++octave)
    octaves.push_back(exponents.octave(octave).total);
  return {{"lowest", lowest},
          {"octaves", std::move(octaves)},
          {"zeros", exponents.zero()},
          {"nonfinite", exponents.infinite() + exponents.nan()},
          {"values", exponents.total()}};
}

/// |S x| <= 2^-25: all octaves below, and of the one that begins there the powers of two.
double flushed_square(const Counts& counts, int scale_log2) {
  const int border = -25 - scale_log2;
  double sum = 0;
  for (int octave = lowest_octave; octave <= std::min(border - 1, highest_octave); ++octave)
    sum += counts.square(octave);
  if (border < lowest_octave || border > highest_octave) return sum;
  return sum + std::ldexp(static_cast<double>(counts.exponents.octave(border).powers_of_two), 2 * border);
}

/// None where no allowed scale is the last one without an infinity.
std::optional<int> greatest_without_overflow(const ExponentHistogram& exponents) {
  int scale_log2 = greatest_scale_log2;
  while (scale_log2 >= least_scale_log2 && exponents.overflowed_at_scale(scale_log2) > 0) --scale_log2;
  const bool is_last = least_scale_log2 <= scale_log2 && scale_log2 < greatest_scale_log2;
  return is_last ? std::optional(scale_log2) : std::nullopt;
}

Json cast(const Counts& counts, int scale_log2) {
  if (scale_log2 < least_scale_log2 || scale_log2 > greatest_scale_log2)
    throw std::invalid_argument("a scale of 2^" + std::to_string(scale_log2) +
                                " is not allowed; allowed: 2^" + std::to_string(least_scale_log2) + " to 2^" +
                                std::to_string(greatest_scale_log2));
  const ExponentHistogram& exponents = counts.exponents;
  const std::uint64_t flushed = exponents.flushed_at_scale(scale_log2),
                      subnormal = exponents.subnormal_at_scale(scale_log2),
                      overflowed = exponents.overflowed_at_scale(scale_log2);
  double square = 0;
  for (const double each : counts.squares) square += each;
  return {{"nonzero", exponents.nonzero_finite()},
          {"flushed", flushed},
          {"subnormal", subnormal},
          {"normal", exponents.nonzero_finite() - flushed - subnormal - overflowed},
          {"overflowed", overflowed},
          {"norm_flushed", square == 0 ? 0 : std::sqrt(flushed_square(counts, scale_log2) / square)},
          {"greatest", optional(greatest_without_overflow(exponents))}};
}

}  // namespace
}  // namespace halflab::page

using namespace halflab::page;

int engine_keep_counts(const char* record) {
  return keep(recorded(Json::parse(record)));
}

const char* engine_count_file(const char* name, const char* bytes, std::size_t size) {
  return answer(count_file(name, {reinterpret_cast<const std::byte*>(bytes), size}));
}

void engine_forget_counts(int number) {
  kept().erase(number);
}

const char* engine_counts(int number) {
  return answer(drawn(counts_of(number)));
}

const char* engine_cast_counts(int number, int scale_log2) {
  return answer(cast(counts_of(number), scale_log2));
}
