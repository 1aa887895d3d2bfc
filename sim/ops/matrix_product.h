#pragma once
/// The products behind linear maps, each with a stated order, shared by matmul, linear, conv2d, attention and
/// lstm.

#include <span>
#include <vector>

#include "fp16/config.h"
#include "sim/precision/arithmetic.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// c (a.rows x b.columns, `row_stride` elements from row to row) = sums over k of a * b, as
/// `arithmetic.products` says; the double form is binary64 chains throughout.
void chains(const fp16::MatrixOperand& a, const fp16::MatrixOperand& b, float* c, std::size_t row_stride,
            const Arithmetic& arithmetic, fp16::ChainStart start = fp16::ChainStart::zero);
void chains(const fp16::MatrixOperand& a, const fp16::MatrixOperand& b, double* c, std::size_t row_stride,
            const Arithmetic& arithmetic, fp16::ChainStart start = fp16::ChainStart::zero);

/// What becomes of a finished sum before it is rounded to the output's format.
struct SumCompletion {
  double factor = 1;                    ///< multiplied with it, rounded once to binary32 (binary64)
  const Tensor* column_bias = nullptr;  ///< then added: its element j to the sums of column j
};

/// out (a.rows x b.columns) = sums over k of a * b, completed; then one rounding to out's format.
void matrix_product(const RoundedOutput& out, const fp16::MatrixOperand& a, const fp16::MatrixOperand& b,
                    const Arithmetic& arithmetic, const SumCompletion& completion = {});

/// Each sum times a factor, rounded once.
template <class Real>
FP16_VECTOR_CLONES void multiply_each(std::span<Real> sums, double factor) {
  if (factor == 1) return;
  if (const auto same = static_cast<Real>(factor);
      same == factor) {  // a product of floats is exact in binary64
    for (Real& sum : sums) sum *= same;
  } else {
    for (Real& sum : sums) sum = static_cast<Real>(sum * factor);
  }
}

/// Where to form `count` sums that belong to the output from element `offset` on: there, when it holds Real,
/// else in `scratch`. store() then rounds them into their place.
template <class Real>
std::span<Real> sums_of(const RoundedOutput& out, std::size_t offset, std::size_t count,
                        std::vector<Real>& scratch) {
  if (out.tensor->format().size_bytes() == sizeof(Real)) {
    return out.tensor->elements<Real>().subspan(offset, count);
  }
  if (scratch.size() < count) scratch.resize(count);
  return std::span(scratch).first(count);
}

/// `threads`, but one for fewer products than are worth another's start.
int threads_for(std::size_t products, int threads);

inline Arithmetic with_one_thread(Arithmetic arithmetic) {
  arithmetic.threads = 1;
  return arithmetic;
}

/// A buffer as a row-major matrix operand.
inline fp16::MatrixOperand operand(std::span<const float> values, std::size_t rows, std::size_t columns) {
  return {values.data(), fp16::binary32, rows, columns, columns};
}
inline fp16::MatrixOperand operand(std::span<const double> values, std::size_t rows, std::size_t columns) {
  return {values.data(), fp16::binary64, rows, columns, columns};
}

}  // namespace sim
