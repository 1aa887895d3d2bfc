#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct LayerNormOptions {
  double epsilon = 1e-5;  ///< added to the variance
};

/// Normalised rows: inputs x, weight and bias (as long as x's last dimension).
/// y = (x - mean) * inverse * weight + bias, where inverse = 1 / sqrt(variance + epsilon), with the mean and
/// the biased variance of each row: two passes, each summed in the interleaved order. Both are values of
/// `reductions`. Saved: the rows' means and their inverses.
extern const Operation layer_norm;

}  // namespace sim
