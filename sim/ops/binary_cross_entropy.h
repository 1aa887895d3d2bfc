#pragma once

#include "sim/ops/elementwise_loss_options.h"
#include "sim/ops/operation.h"

namespace sim {

/// Binary cross entropy of probabilities: -(t log p + (1 - t) log(1 - p)), its logarithms no less than -100;
/// NaN for p outside [0, 1]. Inputs and output as of every elementwise_loss. Options: ElementwiseLossOptions.
extern const Operation binary_cross_entropy;

}  // namespace sim
