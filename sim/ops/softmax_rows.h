#pragma once
/// What softmax, its logarithm and the cross entropy have in common: rows shifted by their largest element.
/// Real is float or double.

#include <cstddef>

#include "fp16/format.h"
#include "sim/ops/elementary.h"

namespace sim {

/// exponentials[i] = exp(values[i] - largest) for i < computed; returns the sum of the first `count`, in the
/// interleaved order.
template <class Real>
Real exponentials_of(const Real* values, std::size_t count, std::size_t computed, Real largest,
                     Real* exponentials, fp16::Format reductions);

template <class Real>
struct SoftmaxRow {
  Real largest;
  Real sum;  ///< of exp(value - largest)
};

/// probabilities[i] = exp(values[i] - largest) / sum for i < count. What follows them, up to `computed`, is
/// overwritten: a whole number of vectors takes less time than some of its elements.
template <class Real>
SoftmaxRow<Real> softmax_row(const Real* values, std::size_t count, std::size_t computed, Real* probabilities,
                             fp16::Format reductions);

}  // namespace sim
