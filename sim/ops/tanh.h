#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The hyperbolic tangent of each element.
extern const Operation tanh;

}  // namespace sim
