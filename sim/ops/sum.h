#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The sum of all elements, a scalar, in the interleaved order.
extern const Operation sum;

}  // namespace sim
