#pragma once

#include "sim/ops/elementwise_loss_options.h"
#include "sim/ops/operation.h"

namespace sim {

/// Mean absolute error: |prediction - target|. Inputs and output as of every elementwise_loss. Options:
/// ElementwiseLossOptions.
extern const Operation mean_absolute_error;

}  // namespace sim
