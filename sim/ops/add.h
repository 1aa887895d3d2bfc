#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The sum of two tensors of one shape, a + b.
extern const Operation add;

}  // namespace sim
