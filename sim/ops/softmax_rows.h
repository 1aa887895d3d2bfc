#pragma once
/// What softmax, its logarithm and the cross entropy have in common: rows shifted by their largest element.

#include <limits>

#include "sim/ops/elementary.h"
#include "sim/ops/groups.h"
#include "sim/ops/operation.h"
#include "sim/ops/sums.h"

namespace sim {

/// The largest of `count` elements; NaNs are passed over.
template <class Real>
FP16_VECTOR_CLONES Real largest_of(const Real* values, std::size_t count) {
  const auto larger = [](Real a, Real b) { return b > a ? b : a; };
  Lanes<Real> lanes;
  lanes.fill(-std::numeric_limits<Real>::infinity());
  combine_interleaved(lanes, count, larger, [values](std::size_t i) { return values[i]; });
  return fold(lanes, larger);
}

/// exponentials[i] = exp(values[i] - largest) for i < computed; returns the sum of the first `count`, in the
/// interleaved order.
template <class Real>
Real exponentials_of(const Real* values, std::size_t count, std::size_t computed, Real largest,
                     Real* exponentials, fp16::Format reductions) {
  apply_to_each([largest](Real value) { return elementary::exp(value - largest); }, computed, exponentials,
                values);
  return interleaved_sum<Real>(reductions, count, [exponentials](std::size_t i) { return exponentials[i]; });
}

template <class Real>
struct SoftmaxRow {
  Real largest;
  Real sum;  ///< of exp(value - largest)
};

/// probabilities[i] = exp(values[i] - largest) / sum for i < count. What follows them, up to `computed`, is
/// overwritten: a whole number of vectors takes less time than some of its elements.
template <class Real>
SoftmaxRow<Real> softmax_row(const Real* values, std::size_t count, std::size_t computed, Real* probabilities,
                             fp16::Format reductions) {
  const Real largest = largest_of(values, count);
  const Real sum = exponentials_of(values, count, computed, largest, probabilities, reductions);
  apply_in_place([sum](Real exponential) { return exponential / sum; }, computed, probabilities);
  return {largest, sum};
}

}  // namespace sim
