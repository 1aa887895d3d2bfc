#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The unbiased variance of all elements, a scalar: the sum of squared differences from the mean over n - 1
/// (torch's default; NaN for a single element). Two passes, each in the interleaved order; the mean is a
/// value of `reductions`. Saved: the mean.
extern const Operation variance;

}  // namespace sim
