#pragma once
/// What layer and batch norm have in common.

#include <cstddef>

#include "fp16/names.h"
#include "sim/ops/operation.h"
#include "sim/ops/sums.h"

namespace sim {

inline double checked_epsilon(const Operation& operation, double epsilon) {
  return names::checked_option<double>(operation.name, "epsilon", epsilon,
                                       {.lower = 0, .includes_lower = true});
}

template <class Real>
struct Deviations {
  Real mean;
  Real sum_of_squares;  ///< of the differences from the mean
};

/// Two passes, each summed in the interleaved order; the mean is a value of `reductions` too.
template <class Real>
Deviations<Real> deviations_of(const Real* values, std::size_t count, fp16::Format reductions) {
  const Real sum = interleaved_sum(reductions, std::span(values, count));
  const Real mean = mean_of_sum(reductions, sum, count);
  return {mean,
          interleaved_sum<Real>(
              reductions, [mean](Real value) { return (value - mean) * (value - mean); }, count, values)};
}

}  // namespace sim
