#pragma once
/// The sums behind linear maps, each with a stated order, shared by matmul, linear, conv2d and bias.

#include <span>

#include "fp16/half.h"
#include "sim/tensor.h"

namespace sim {

/// out (a.rows x b.columns) = chains over k of a * b; with `column_bias`, its element j is added to the
/// finished chain of column j in the precision of the chain; then one rounding to out's format.
void matrix_product(const RoundedOutput& out, const fp16::MatrixOperand& a, const fp16::MatrixOperand& b,
                    fp16::Accumulation accumulation, const Tensor* column_bias = nullptr);

/// out[j] = m[0][j] + m[1][j] + ...: rows in ascending order, every addition rounded to binary32, for
/// fp16_fma_chain to binary16 (binary64 tensors: to binary64); then one rounding to out's format. m is rows x
/// columns, row-major.
void sum_over_rows(const RoundedOutput& out, const Tensor& m, std::size_t rows, std::size_t columns,
                   fp16::Accumulation accumulation);

/// sum = sum + term, rounded as above. For the FP16 chains both hold values of binary16, and the binary32 sum
/// of two halves rounds to binary16 as their exact sum does: 24 >= 2 * 11 + 2 (Figueroa 1995).
inline void add_term(float& sum, float term, fp16::Accumulation accumulation) {
  sum += term;
  const bool in_binary16 = accumulation == fp16::Accumulation::fp16_fma_chain ||
                           accumulation == fp16::Accumulation::fp16_mul_add_chain;
  if (in_binary16) sum = fp16::half(sum);
}
inline void add_term(double& sum, double term, fp16::Accumulation) {
  sum += term;
}

/// Chains of products into a buffer of Real: the float form takes `accumulation`, the double form is binary64
/// throughout.
inline void chains(const fp16::MatrixOperand& a, const fp16::MatrixOperand& b, float* c,
                   fp16::Accumulation accumulation, fp16::ChainStart start = fp16::ChainStart::zero) {
  fp16::gemm(a, b, c, b.columns, accumulation, {.start = start});
}
inline void chains(const fp16::MatrixOperand& a, const fp16::MatrixOperand& b, double* c, fp16::Accumulation,
                   fp16::ChainStart start = fp16::ChainStart::zero) {
  fp16::gemm(a, b, c, b.columns, {.start = start});
}

/// A Real buffer as a row-major matrix operand.
inline fp16::MatrixOperand operand(std::span<const float> values, std::size_t rows, std::size_t columns) {
  return {.data = values.data(),
          .storage = fp16::binary32,
          .rows = rows,
          .columns = columns,
          .row_stride = columns};
}
inline fp16::MatrixOperand operand(std::span<const double> values, std::size_t rows, std::size_t columns) {
  return {.data = values.data(),
          .storage = fp16::binary64,
          .rows = rows,
          .columns = columns,
          .row_stride = columns};
}

}  // namespace sim
