#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// max(x, 0) of each element; the gradient at 0 is 0, and NaN passes.
extern const Operation relu;

}  // namespace sim
