#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct SoftmaxOptions {
  /// The last two dimensions are context x context scores, of which no row looks past its own token.
  bool causal = false;
};

/// A softmax along the last dimension; sums of exponentials in the interleaved order.
extern const Operation softmax;

}  // namespace sim
