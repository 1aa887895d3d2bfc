#pragma once

#include "sim/ops/elementwise_loss_options.h"
#include "sim/ops/operation.h"

namespace sim {

/// Binary cross entropy of logits x: max(x, 0) - x t + log(1 + exp(-|x|)), which overflows for no finite one.
/// Inputs and output as of every elementwise_loss. Options: ElementwiseLossOptions.
extern const Operation binary_cross_entropy_with_logits;

}  // namespace sim
