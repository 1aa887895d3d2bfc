#pragma once
/// The loss scale that the experiments recommend for gradients they have counted.

#include <optional>

#include "sim/statistics/exponent_histogram.h"

namespace experiments {

/// log2 of the largest power of two that leaves every counted gradient an octave below FP16's largest finite
/// value: floor(log2(65504 / largest)) - 1. None without a finite non-zero gradient.
inline std::optional<int> recommended_scale_log2(const sim::ExponentHistogram& gradients) {
  const std::optional<int> headroom = gradients.log2_headroom();
  return headroom ? std::optional(*headroom - 1) : std::nullopt;
}

}  // namespace experiments
