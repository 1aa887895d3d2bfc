#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The natural logarithm of each element.
extern const Operation log;

}  // namespace sim
