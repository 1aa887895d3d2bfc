#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// A linear map: inputs x (batch x in_features), w (out_features x in_features) and, if the layer has one, b
/// (out_features); output: x w^T + b (batch x out_features), the bias added to the finished chain before the
/// one rounding. Operands are narrowed with blocks along the features or, of the weight gradient, the batch.
extern const Operation linear;

}  // namespace sim
