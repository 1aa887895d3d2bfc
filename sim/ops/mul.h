#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The product of two tensors of one shape, element by element.
extern const Operation mul;

}  // namespace sim
