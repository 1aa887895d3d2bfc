#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "fp16/codec.h"
#include "tools/halflab/elements.h"
#include "tools/halflab/inputs.h"
#include "tools/halflab/quantize/findings.h"

namespace halflab::quantize {
namespace {

namespace files = experiments::tensor_files;

void count_errors(std::span<const double> values, std::span<const double> decoded, TensorFound& found) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i], result = decoded[i];
    if (!std::isfinite(value)) {
      ++found.nonfinite;
      continue;
    }
    found.nonzero += value != 0;
    found.max_abs = std::max(found.max_abs, std::fabs(value));
    if (!std::isfinite(result)) {
      ++found.lost;
      continue;
    }
    found.flushed += value != 0 && result == 0;
    const double error = result - value;
    found.squares.add(value);
    found.error_squares.add(error);
    found.max_error = std::max(found.max_error, std::fabs(error));
  }
}

/// Each rounded once to binary32.
void append_floats(std::span<const double> values, std::vector<float>& floats) {
  for (const double value : values)
    floats.push_back(std::bit_cast<float>(fp16::encode<fp16::binary32>(value).bits));
}

/// What is to be written, with the bytes that it consists of.
class OutputFile {
 public:
  OutputFile(const files::TensorSet& set, const Options& options, const Recipe& recipe)
      : options_(options), recipe_(recipe) {
    if (set.has_read(options.to))
      throw std::invalid_argument(fmt::format("--to: '{}' is read; allowed: another file", options.to));
  }

  void add(const files::StoredTensor& tensor, Quantized quantized) {
    const Quantized& kept = quantized_.emplace_back(std::move(quantized));
    for (files::TensorToWrite& part : parts_of(tensor, kept, recipe_)) add_part(std::move(part));
  }

  void add(const files::StoredTensor& tensor, std::vector<float> decoded) {
    const std::vector<float>& kept = floats_.emplace_back(std::move(decoded));
    add_part({tensor.name, files::type_of_safetensors("F32"), tensor.shape, std::as_bytes(std::span(kept))});
  }

  void write() const {
    std::vector<std::pair<std::string, std::string>> metadata{
        {"format", std::string(recipe_.format_name)}, {"rounding", std::string(recipe_.rounding_name)}};
    if (recipe_.rounding == fp16::Rounding::stochastic)
      metadata.emplace_back("seed", fmt::format("{}", recipe_.seed));
    if (recipe_.block != nullptr) {
      metadata.emplace_back("block_size", fmt::format("{}", recipe_.block->block_size));
      if (!recipe_.block->has_tensor_scale)
        metadata.emplace_back("scale_rule", std::string(fp16::name_of(recipe_.scale_rule)));
    }
    files::write_safetensors(options_.to, parts_, metadata);
  }

 private:
  void add_part(files::TensorToWrite part) {
    if (!names_.insert(part.name).second)
      throw std::invalid_argument(fmt::format(
          "--to: two tensors would be called '{}'; allowed: a --select that leaves one of them", part.name));
    parts_.push_back(std::move(part));
  }

  const Options& options_;
  const Recipe& recipe_;
  std::deque<Quantized> quantized_;  // whose elements stay where they are
  std::deque<std::vector<float>> floats_;
  std::vector<files::TensorToWrite> parts_;
  std::set<std::string> names_;
};

std::uint64_t bytes_of(const Quantized& quantized) {
  return quantized.codes.size() + quantized.scales.size() + (quantized.tensor_scale ? sizeof(float) : 0);
}

}  // namespace

TensorFound& TensorFound::operator+=(const TensorFound& other) {
  values += other.values;
  nonzero += other.nonzero;
  nonfinite += other.nonfinite;
  flushed += other.flushed;
  overflowed += other.overflowed;
  lost += other.lost;
  bytes += other.bytes;
  squares += other.squares;
  error_squares += other.error_squares;
  max_abs = std::max(max_abs, other.max_abs);
  max_error = std::max(max_error, other.max_error);
  is_rounded_first |= other.is_rounded_first;
  return *this;
}

double TensorFound::relative_error() const {
  if (has_nothing_left()) return std::numeric_limits<double>::infinity();
  return squares.is_zero() ? 0 : error_squares.norm() / squares.norm();
}

double TensorFound::sqnr() const {
  if (has_nothing_left()) return -std::numeric_limits<double>::infinity();
  return error_squares.is_zero() ? std::numeric_limits<double>::infinity()
                                 : 20 * std::log10(squares.norm() / error_squares.norm());
}

MeasuredTensor measure_tensor(const files::StoredTensor& tensor, const Recipe& recipe, int threads,
                              const ValueConsumer& consume) {
  TensorFound found{.name = tensor.name,
                    .stored_as = std::string(tensor.type->format),
                    .shape = files::text_of(tensor.shape),
                    .values = tensor.elements,
                    .is_rounded_first = recipe.block != nullptr && format_of(tensor) == fp16::binary64};
  Quantized quantized =
      quantize(tensor, recipe, threads, [&](std::span<const double> values, std::span<const double> decoded) {
        count_errors(values, decoded, found);
        consume(values, decoded);
      });
  found.overflowed = quantized.overflowed;
  found.bytes = bytes_of(quantized);
  found.tensor_scale = quantized.tensor_scale;
  return {std::move(found), std::move(quantized)};
}

Findings measure(const files::TensorSet& set, const Options& options, experiments::Run& run) {
  Findings found{.recipe = recipe_of(options), .tensors = {}, .total = {}, .remark = {}, .to = options.to};
  found.total.name = "all";
  std::optional<OutputFile> output;
  if (!options.to.empty()) output.emplace(set, options, found.recipe);
  experiments::Progress progress = run.progress("quantize", set.tensors().size());
  for (const files::StoredTensor& tensor : set.tensors()) {
    std::vector<float> floats;
    auto [row, quantized] =
        measure_tensor(tensor, found.recipe, run.threads(), [&](auto, std::span<const double> decoded) {
          if (output && options.decoded) append_floats(decoded, floats);
        });
    found.total += row;
    found.tensors.push_back(std::move(row));
    if (output && options.decoded) {
      output->add(tensor, std::move(floats));
    } else if (output) {
      output->add(tensor, std::move(quantized));
    }
    progress.tick();
  }
  found.remark = remark_on_integers(set);
  if (output) output->write();
  return found;
}

}  // namespace halflab::quantize
