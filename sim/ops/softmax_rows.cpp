#include "sim/ops/softmax_rows.h"

#include <span>

#include "sim/ops/elements.h"
#include "sim/ops/sums.h"

namespace sim {

template <class Real>
Real exponentials_of(const Real* values, std::size_t count, std::size_t computed, Real largest,
                     Real* exponentials, fp16::Format reductions) {
  apply_to_each([largest](Real value) { return elementary::exp(value - largest); }, computed, exponentials,
                values);
  return interleaved_sum(reductions, std::span<const Real>(exponentials, count));
}

template <class Real>
SoftmaxRow<Real> softmax_row(const Real* values, std::size_t count, std::size_t computed, Real* probabilities,
                             fp16::Format reductions) {
  const Real largest = largest_of(values, count);
  const Real sum = exponentials_of(values, count, computed, largest, probabilities, reductions);
  apply_in_place([sum](Real exponential) { return exponential / sum; }, computed, probabilities);
  return {largest, sum};
}

template float exponentials_of(const float*, std::size_t, std::size_t, float, float*, fp16::Format);
template double exponentials_of(const double*, std::size_t, std::size_t, double, double*, fp16::Format);
template SoftmaxRow<float> softmax_row(const float*, std::size_t, std::size_t, float*, fp16::Format);
template SoftmaxRow<double> softmax_row(const double*, std::size_t, std::size_t, double*, fp16::Format);

}  // namespace sim
