#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The logarithm of a softmax: (x - largest) - log(sum of exp(x - largest)) along the last dimension, the sum
/// in the interleaved order.
extern const Operation log_softmax;

}  // namespace sim
