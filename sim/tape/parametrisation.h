#pragma once
/// Unit scaling on a tape: which multipliers each operation gets.

#include <span>
#include <string_view>

#include "sim/loss_scaling/unit_scaling.h"
#include "sim/ops/operation.h"

namespace sim {

/// The multipliers of one operation on these inputs; ones for an operation without a rule. The linear layer
/// called "output" is the readout. Losses are then to be evaluated as sums (OperationOptions::normaliser =
/// 1).
UnitMultipliers multipliers_of(const UnitScaling& rule, const Operation& operation,
                               std::span<const Tensor* const> inputs, const OperationOptions& options,
                               std::string_view layer);

}  // namespace sim
