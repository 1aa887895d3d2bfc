#pragma once

#include <vector>

#include "sim/ops/operation.h"

namespace sim {

struct SmoothL1Options {
  std::vector<float> row_weights;  ///< as ElementwiseLossOptions has it
  double normaliser = 0;           ///< likewise
  double beta = 1;  ///< where the square turns into the absolute error, which it is throughout with beta 0
};

/// Smooth L1: d^2 / (2 beta) where |d| = |prediction - target| < beta, else |d| - beta/2. Inputs and output
/// as of every elementwise_loss.
extern const Operation smooth_l1;

}  // namespace sim
