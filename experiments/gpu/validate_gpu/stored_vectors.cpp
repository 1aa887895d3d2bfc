#include "experiments/gpu/validate_gpu/stored_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <ranges>
#include <span>
#include <stdexcept>

#include "fp16/codec.h"
#include "fp16/formats.h"

namespace experiments::validate_gpu {
namespace {

constexpr std::size_t most_counterexamples = 8;

std::vector<std::uint32_t> parse_row(std::string_view line, std::size_t columns, const std::string& place) {
  std::vector<std::uint32_t> values;
  for (const auto& cell : std::views::split(line, ',')) {
    const std::string_view text(cell.begin(), cell.end());
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || end != text.data() + text.size())
      throw std::runtime_error(fmt::format("{}: '{}' is not a hexadecimal number of 32 bits", place, text));
    values.push_back(value);
  }
  if (values.size() != columns)
    throw std::runtime_error(fmt::format("{}: {} cells; the header has {}", place, values.size(), columns));
  return values;
}

void enter(VectorOutcome& outcome, const VectorMismatch& found) {
  ++outcome.steps;
  if (found.result == found.expected) return;
  ++outcome.mismatches;
  if (outcome.counterexamples.size() < most_counterexamples) outcome.counterexamples.push_back(found);
}

}  // namespace

const std::vector<VectorFile>& vector_files() {
  static const std::vector<VectorFile> files{
      {"v100_dot4.csv", fp16::volta}, {"a100_dot8.csv", fp16::ampere}, {"h100_dot16.csv", fp16::hopper}};
  return files;
}

std::optional<std::filesystem::path> vector_folder() {
  const char* const data = std::getenv("HALFLAB_DATA_DIR");
  if (data == nullptr || *data == '\0') return std::nullopt;
  const std::filesystem::path folder = std::filesystem::path(data) / "tensor-core";
  return std::filesystem::is_directory(folder) ? std::optional(folder) : std::nullopt;
}

std::vector<VectorOutcome> check_vectors(const std::filesystem::path& folder, const VectorFile& file) {
  const std::string path = (folder / file.name).string();
  std::ifstream stream(path);
  std::string line;
  if (!std::getline(stream, line)) throw std::runtime_error(path + ": cannot be read");
  const auto products = static_cast<std::size_t>(file.core.products_per_step);
  const std::size_t columns = 2 * products + 3;
  if (!line.ends_with(",c_f32,d_f32,d_f16") ||
      static_cast<std::size_t>(std::ranges::count(line, ',')) + 1 != columns)
    throw std::runtime_error(
        fmt::format("{}: the header must be a0..,b0..,c_f32,d_f32,d_f16 with {} products", path, products));

  VectorOutcome wide{.accumulator = "f32"}, narrow{.accumulator = "f16"};
  for (int number = 2; std::getline(stream, line); ++number) {
    const std::vector<std::uint32_t> values =
        parse_row(line, columns, fmt::format("{}, line {}", path, number));
    std::vector<std::uint16_t> factors(2 * products);
    std::ranges::transform(values | std::views::take(2 * products), factors.begin(),
                           [](std::uint32_t value) { return static_cast<std::uint16_t>(value); });
    const std::span<const std::uint16_t> a(factors.data(), products), b(factors.data() + products, products);
    const std::uint32_t c = values[2 * products];
    const std::uint16_t narrow_c = fp16::convert<fp16::binary16, fp16::binary32>(c).bits;
    enter(wide, {.line = number,
                 .result = values[2 * products + 1],
                 .expected = fp16::mma_step<fp16::binary32>(file.core, a, b, c)});
    enter(narrow, {.line = number,
                   .result = values[2 * products + 2],
                   .expected = fp16::mma_step<fp16::binary16>(file.core, a, b, narrow_c)});
  }
  return {wide, narrow};
}

}  // namespace experiments::validate_gpu
