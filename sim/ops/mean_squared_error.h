#pragma once

#include "sim/ops/elementwise_loss_options.h"
#include "sim/ops/operation.h"

namespace sim {

/// Mean squared error: (prediction - target)^2. Inputs and output as of every elementwise_loss. Options:
/// ElementwiseLossOptions.
extern const Operation mean_squared_error;

}  // namespace sim
