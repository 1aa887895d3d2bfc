#pragma once
/// Sums over all elements of tensors, and down the columns of matrices. Real is float or double.

#include <array>
#include <cstddef>
#include <span>

#include "sim/ops/operation.h"
#include "sim/ops/sums.h"

namespace sim {

/// The interleaved sum of what `function` computes of the inputs' elements.
template <class Real>
Real sum_of_pieces(std::span<const Tensor* const> inputs, fp16::Format reductions,
                   const PieceFunction<Real>& function);

/// The interleaved sum over all i of function(inputs[0][i], ...).
template <class Real, std::size_t Count, class Function>
Real sum_of_elements(const std::array<const Tensor*, Count>& inputs, fp16::Format reductions,
                     Function function) {
  return sum_of_pieces<Real>(inputs, reductions, elementwise<Real, Count>(function));
}

/// The interleaved sum of a tensor's elements.
template <class Real>
Real sum_of_elements(const Tensor& x, fp16::Format reductions);

/// out[j] = the sum of column j of m, whose rows are as long as `out`.
void sum_over_rows(const RoundedOutput& out, const Tensor& m, fp16::Format reductions);

/// A scalar, rounded once to the output's format. A NaN becomes the default one: which of several a sum hands
/// on is the compiler's choice.
template <class Real>
Tensor scalar_output(OperationCall& call, Real value);

/// The gradient of every element of input 0 is the output's divided by `divisor`.
void spread_output_gradient(const OperationGradient& g, std::size_t divisor);

}  // namespace sim
