#include "experiments/explain_gemm/problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "experiments/explain_gemm/tree_file.h"
#include "fp16/bulk.h"
#include "fp16/codec.h"
#include "fp16/mma.h"
#include "sim/tensor/random.h"

namespace experiments::explain_gemm {
namespace {

using fp16::bfloat16;
using fp16::binary16;
using fp16::binary32;

std::vector<float> values_of(const Matrix& matrix) {
  std::vector<float> values(matrix.codes.size());
  std::ranges::transform(matrix.codes, values.begin(), [&](std::uint32_t code) {
    return static_cast<float>(value_of(matrix.format, code));
  });
  return values;
}

void require_shape(const char* option, const Matrix& matrix, std::size_t rows, std::size_t columns) {
  if (matrix.rows == rows && matrix.columns == columns) return;
  const bool is_transposed = matrix.rows == columns && matrix.columns == rows;
  throw std::invalid_argument(fmt::format("{}: the matrix is {} x {} where A and B want {} x {}{}", option,
                                          matrix.rows, matrix.columns, rows, columns,
                                          is_transposed ? "; its transpose would fit" : ""));
}

void require_depth(const Matrix& a, const Matrix& b) {
  if (b.rows == a.columns) return;
  const bool is_transposed = b.columns == a.columns;
  throw std::invalid_argument(fmt::format("--b: the matrix is {} x {} where A, {} x {}, wants {} rows{}",
                                          b.rows, b.columns, a.rows, a.columns, a.columns,
                                          is_transposed ? "; its transpose would fit" : ""));
}

/// Whether a number is one of a format; infinities and NaNs are of all.
bool is_of(const fp16::Format& format, double value) {
  return !std::isfinite(value) || double{rounded_to(format, static_cast<float>(value))} == value;
}

/// In this order, since numbers that are of both have few digits: bfloat16's.
constexpr std::array narrow_formats{bfloat16, binary16};

fp16::Format format_of_operands(const Matrix& a, const Matrix& b) {
  if (a.format == b.format && a.format != binary32) return a.format;
  for (const fp16::Format& format : narrow_formats) {
    const auto all_are = [&](const Matrix& m) {
      return std::ranges::all_of(m.codes,
                                 [&](std::uint32_t code) { return is_of(format, value_of(m.format, code)); });
    };
    if (all_are(a) && all_are(b)) return format;
  }
  return binary32;
}

/// alpha A B + beta C in double, which is exact where its sums have few digits.
double sum_in_double(const Problem& problem, std::size_t output) {
  double sum = 0;
  for (std::size_t k = 0; k < problem.depth; ++k) sum += product_at(problem, output, k);
  return double{problem.alpha} * sum + double{problem.beta} * problem.c_at(output);
}

/// Whether D's floats are numbers of a format, though what they should be are none.
bool holds_widened(const Problem& problem, const fp16::Format& format) {
  constexpr std::size_t most_sums = 1024;
  if (problem.d.format != binary32) return false;
  const auto is_one = [&](std::uint32_t code) { return is_of(format, value_of(binary32, code)); };
  if (!std::ranges::all_of(problem.d.codes, is_one)) return false;
  const std::size_t sums = std::min(most_sums, problem.outputs());
  for (std::size_t i = 0; i < sums; ++i) {
    const std::size_t output = i * problem.outputs() / sums;
    const double observed = value_of(binary32, problem.d.codes[output]);
    if (std::isfinite(observed) && observed != 0 && !is_of(format, sum_in_double(problem, output)))
      return true;
  }
  return false;
}

/// Takes D for the numbers that its file held as floats.
void narrow(Problem& problem) {
  for (const fp16::Format& format : narrow_formats) {
    if (!holds_widened(problem, format)) continue;
    for (std::uint32_t& code : problem.d.codes) code = code_of(format, std::bit_cast<float>(code));
    problem.d.format = format;
    problem.was_widened = true;
  }
}

template <class Values>
void append(Values& values, const Values& further) {
  values.insert(values.end(), further.begin(), further.end());
}

std::vector<std::string> files_of(const char* option, const std::string& list) {
  std::vector<std::string> files;
  for (const auto name : std::views::split(list, ',')) files.emplace_back(name.begin(), name.end());
  if (!list.empty() && std::ranges::any_of(files, &std::string::empty))
    throw std::invalid_argument(fmt::format("{}: '{}' has a file without a name", option, list));
  return files;
}

/// The files of all triples.
struct Files {
  std::vector<std::string> a, b, d, c;
};

Files files_of(const Inputs& inputs) {
  Files files{.a = files_of("--a", inputs.a),
              .b = files_of("--b", inputs.b),
              .d = files_of("--d", inputs.d),
              .c = files_of("--c", inputs.c)};
  const auto require_as_many = [&](const char* option, const std::vector<std::string>& list) {
    if (!list.empty() && list.size() != files.a.size())
      throw std::invalid_argument(
          fmt::format("{}: the number of files is {} where --a has {}", option, list.size(), files.a.size()));
  };
  require_as_many("--b", files.b);
  require_as_many("--d", files.d);
  require_as_many("--c", files.c);
  if (inputs.by_cublas && files.a.size() > 1)
    throw std::invalid_argument(
        fmt::format("--a: the number of files is {} where --cublas takes one", files.a.size()));
  return files;
}

Problem read_triple(const Inputs& inputs, const Files& files, std::size_t triple) {
  const Matrix a = read_matrix(files.a[triple]), b = read_matrix(files.b[triple]);
  Problem problem{.rows = a.rows,
                  .depth = a.columns,
                  .columns = b.columns,
                  .a = values_of(a),
                  .b = values_of(b),
                  .d = {.rows = a.rows, .columns = b.columns, .codes = {}},
                  .alpha = inputs.alpha,
                  .beta = inputs.beta.value_or(inputs.c.empty() ? 0.0f : 1.0f),
                  .operands = format_of_operands(a, b)};
  problem.d.codes.resize(problem.outputs());
  if (!inputs.by_cublas) problem.d = read_matrix(files.d[triple]);
  require_depth(a, b);
  require_shape("--d", problem.d, problem.rows, problem.columns);
  if (files.c.empty()) return problem;
  const Matrix c = read_matrix(files.c[triple]);
  require_shape("--c", c, problem.rows, problem.columns);
  if (problem.beta != 0) problem.c = values_of(c);
  return problem;
}

/// The triple of these operands, as a number from 0 on; none where there is none. Its outputs are no new evidence.
std::optional<std::size_t> same_triple(const Problem& problem, const Problem& triple) {
  const auto has_at = [](const auto& all, const auto& part, std::size_t index) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(index * part.size());
    return std::memcmp(&*first, part.data(), part.size() * sizeof(float)) == 0;
  };
  for (std::size_t i = 0; i < problem.triples; ++i) {
    if (has_at(problem.a, triple.a, i) && has_at(problem.b, triple.b, i)) return i;
  }
  return {};
}

fp16::SummationTree tree_for(const Problem& problem, const std::string& file) {
  fp16::SummationTree tree = read_tree(file);
  if (tree.leaves != problem.depth)
    throw std::invalid_argument(
        fmt::format("--tree: '{}' adds {} terms where k is {}", file, tree.leaves, problem.depth));
  if (!tree.is_binary())
    throw std::invalid_argument(
        fmt::format("--tree: '{}' adds more than two terms at one time; allowed: sums of two, for what a "
                    "wider node rounds is not "
                    "in the file",
                    file));
  return tree;
}

/// Below the triples that are there. Another shape may well be summed in another order.
void append(const Files& files, Problem& problem, const Problem& triple) {
  const std::size_t index = problem.triples;
  const std::array shape{triple.rows, triple.depth, triple.columns};
  const std::array wanted{problem.rows_each(), problem.depth, problem.columns};
  if (shape != wanted)
    throw std::invalid_argument(fmt::format(
        "--a: '{}' begins a triple of m x k x n = {} where the first has {}; all must be of one shape",
        files.a[index], fmt::join(shape, " x "), fmt::join(wanted, " x ")));
  if (triple.operands != problem.operands)
    throw std::invalid_argument(fmt::format("--a: '{}' and its B hold numbers of {} where the first hold {}",
                                            files.a[index], short_name(triple.operands),
                                            short_name(problem.operands)));
  if (triple.d.format != problem.d.format)
    throw std::invalid_argument(fmt::format("--d: '{}' is not of the first file's type", files.d[index]));
  if (const auto same = same_triple(problem, triple))
    throw std::invalid_argument(fmt::format(
        "--a: '{}' and its B hold the numbers of triple {}, '{}', which would count twice; allowed: "
        "triples of other numbers",
        files.a[index], *same + 1, files.a[*same]));
  append(problem.a, triple.a);
  append(problem.b, triple.b);
  append(problem.d.codes, triple.d.codes);
  append(problem.c, triple.c);
  problem.rows += triple.rows;
  problem.d.rows += triple.rows;
  ++problem.triples;
}

std::vector<float> normal_halves(std::size_t count, std::uint64_t seed, std::string_view purpose) {
  const sim::RandomStream stream(seed, purpose);
  std::vector<float> halves(count);
  for (std::size_t i = 0; i < count; ++i) halves[i] = rounded_to(binary16, stream.normal(i));
  return halves;
}

}  // namespace

double value_of(const fp16::Format& format, std::uint32_t code) {
  if (format == binary32) return std::bit_cast<float>(code);
  const auto narrow = static_cast<std::uint16_t>(code);
  return format == bfloat16 ? fp16::decode<bfloat16>(narrow) : fp16::decode<binary16>(narrow);
}

std::uint32_t code_of(const fp16::Format& format, float value) {
  if (format == binary32) return std::bit_cast<std::uint32_t>(value);
  return format == bfloat16 ? fp16::encode<bfloat16>(value).bits : fp16::encode<binary16>(value).bits;
}

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits(values.size());
  std::ranges::transform(values, bits.begin(),
                         [](float value) { return std::bit_cast<std::uint32_t>(value); });
  return bits;
}

std::vector<std::uint16_t> halves_of(const std::vector<float>& values) {
  std::vector<std::uint16_t> halves(values.size());
  fp16::encode<binary16>(values, halves);
  return halves;
}

std::string_view short_name(const fp16::Format& format) {
  return format == binary16 ? "FP16" : format == bfloat16 ? "bfloat16" : "FP32";
}

Problem read_problem(const Inputs& inputs) {
  if (inputs.by_cublas && !inputs.d.empty())
    throw std::invalid_argument("--d: with --cublas D is made, not read");
  if (inputs.a.empty() || inputs.b.empty() || (inputs.d.empty() && !inputs.by_cublas))
    throw std::invalid_argument(
        inputs.by_cublas ? "--a and --b belong together: give both, or none for an example"
                         : "--a, --b and --d belong together: give all three, or none for an example");
  if (inputs.by_cublas && !inputs.tree.empty())
    throw std::invalid_argument("--tree: goes with a D from a file, not with --cublas");
  if (inputs.alpha == 0) throw std::invalid_argument("--alpha: 0 leaves nothing of A B to explain");
  if (inputs.beta.value_or(0) != 0 && inputs.c.empty())
    throw std::invalid_argument("--beta: there is no --c");
  const Files files = files_of(inputs);
  Problem problem = read_triple(inputs, files, 0);
  for (std::size_t i = 1; i < files.a.size(); ++i) append(files, problem, read_triple(inputs, files, i));
  if (!inputs.tree.empty()) problem.tree = tree_for(problem, inputs.tree);
  if (inputs.by_cublas && problem.operands != binary16)
    throw std::invalid_argument(fmt::format(
        "--a: with --cublas A and B are FP16, and these hold numbers of {}", short_name(problem.operands)));
  if (!inputs.by_cublas) narrow(problem);
  return problem;
}

Problem example_operands(std::size_t rows, std::size_t depth, std::size_t columns, std::uint64_t seed) {
  return {.rows = rows,
          .depth = depth,
          .columns = columns,
          .a = normal_halves(rows * depth, seed, "explain_gemm a"),
          .b = normal_halves(depth * columns, seed, "explain_gemm b"),
          .d = {.format = binary32, .rows = rows, .columns = columns, .codes = {}}};
}

Problem example_problem(std::size_t depth, std::uint64_t seed) {
  constexpr std::size_t rows = 96, columns = 64, slices = 4;
  Problem problem = example_operands(rows, depth, columns, seed);
  const std::size_t slice_length = (depth + slices - 1) / slices;
  const std::vector<std::uint16_t> a = halves_of(problem.a), b = halves_of(problem.b);
  std::vector<std::uint16_t> column(depth);
  problem.d.codes.resize(problem.outputs());
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t k = 0; k < depth; ++k) column[k] = b[k * columns + j];
    for (std::size_t i = 0; i < rows; ++i) {
      float sum = 0;
      for (std::size_t first = 0; first < depth; first += slice_length) {
        const std::size_t length = std::min(slice_length, depth - first);
        const std::uint32_t partial =
            fp16::mma_dot<binary32>(fp16::hopper, std::span(a).subspan(i * depth + first, length),
                                    std::span<const std::uint16_t>(column).subspan(first, length), 0);
        sum += std::bit_cast<float>(partial);
      }
      problem.d.codes[i * columns + j] = std::bit_cast<std::uint32_t>(sum);
    }
  }
  return problem;
}

}  // namespace experiments::explain_gemm
