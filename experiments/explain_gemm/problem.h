#pragma once
/// What is to be explained: D, which something computed as alpha A B + beta C, once or for several A, B and C of
/// one shape.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/explain_gemm/matrix.h"
#include "fp16/formats.h"
#include "fp16/summation_tree.h"

namespace experiments::explain_gemm {

/// Files, each a .npy, or several with commas between them; and the factors.
struct Inputs {
  std::string a, b, d;
  std::string c;  ///< empty: there is none
  float alpha = 1;
  std::optional<float> beta;  ///< without it 1 with C, 0 without
  std::string tree;           ///< a file of tree_file.h; empty: none is tried
  bool by_cublas = false;     ///< there is no D: cuBLAS shall make it

  bool any_file() const { return !a.empty() || !b.empty() || !c.empty() || !d.empty(); }
};

/// Where an output stands.
struct Place {
  std::size_t triple, row, column;
};

/// Triples of A, B and D, one below the other: D's rows are those of all.
struct Problem {
  std::size_t rows = 0;     ///< of all A and of all D: m of each triple
  std::size_t depth = 0;    ///< k
  std::size_t columns = 0;  ///< n, of B and D
  std::vector<float> a;     ///< row-major, rows x depth
  std::vector<float> b;     ///< depth x columns of each triple
  Matrix d;                 ///< zeros where cuBLAS shall make it
  std::vector<float> c;     ///< row-major as D; empty where beta = 0
  float alpha = 1;
  float beta = 0;
  /// What A and B are stored in; of floats, and of two formats, the first of bfloat16, binary16 and binary32 that holds
  /// all of them.
  fp16::Format operands = fp16::binary16;
  std::optional<fp16::SummationTree> tree;  ///< an order of the k products that is tried besides
  bool was_widened = false;                 ///< the file of D held its FP16 or bfloat16 numbers as floats
  std::size_t triples = 1;

  std::size_t outputs() const { return rows * columns; }
  std::size_t rows_each() const { return rows / triples; }
  std::size_t triple_of(std::size_t row) const { return row / rows_each(); }
  /// Its row is that of its triple's D.
  Place place_of(std::size_t output) const {
    const std::size_t row = output / columns;
    return {triple_of(row), row % rows_each(), output % columns};
  }
  /// What the k-th product of an output is of.
  float a_of(std::size_t output, std::size_t k) const { return a[output / columns * depth + k]; }
  float b_of(std::size_t output, std::size_t k) const {
    return b[(triple_of(output / columns) * depth + k) * columns + output % columns];
  }
  float c_at(std::size_t output) const { return c.empty() ? 0 : c[output]; }
  bool is_plain() const { return alpha == 1 && beta == 0; }
  /// The format of 16 bits that sums of these operands are stored in, where they are not stored in binary32; none of
  /// operands in binary32.
  std::optional<fp16::Format> narrow() const {
    return operands == fp16::binary32 ? std::nullopt : std::optional(operands);
  }
};

/// The triples that the lists of files make, the first of each, the second, and so on.
///
/// D of floats is taken as the FP16 or bfloat16 numbers that it was before, where each of its numbers is one and the
/// sums that it is made of are not, judged by up to 1024 of them.
/// Throws std::runtime_error for files that are not as they must be and std::invalid_argument for shapes and
/// factors that do not fit together, each naming option or file.
Problem read_problem(const Inputs& inputs);

/// FP16 operands of normal numbers, without D.
Problem example_operands(std::size_t rows, std::size_t depth, std::size_t columns, std::uint64_t seed);

/// A problem whose answer is known: example_operands(), D in FP32 by one step of Hopper's tensor cores after the
/// other with FP32 accumulators, k in four slices, whose sums are added in FP32; output by output, from the scalar
/// definition.
Problem example_problem(std::size_t depth, std::uint64_t seed);

/// Exact: 48 bits and the exponents of two floats fit a double.
inline double product_at(const Problem& problem, std::size_t output, std::size_t k) {
  return double{problem.a_of(output, k)} * double{problem.b_of(output, k)};
}

/// The value of a code of binary16, bfloat16 or binary32, and the code of a value rounded to nearest-even.
double value_of(const fp16::Format& format, std::uint32_t code);
std::uint32_t code_of(const fp16::Format& format, float value);

/// The codes of binary16 of numbers that are halves.
std::vector<std::uint16_t> halves_of(const std::vector<float>& values);

/// The codes of binary32.
std::vector<std::uint32_t> bits_of(std::span<const float> values);

/// A float rounded to one of these formats.
inline float rounded_to(const fp16::Format& format, float value) {
  return static_cast<float>(value_of(format, code_of(format, value)));
}

/// "FP16", "bfloat16" or "FP32".
std::string_view short_name(const fp16::Format& format);

}  // namespace experiments::explain_gemm
