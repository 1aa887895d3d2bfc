#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The logistic function of each element, 1 / (1 + exp(-x)).
extern const Operation sigmoid;

}  // namespace sim
