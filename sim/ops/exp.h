#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The exponential function of each element.
extern const Operation exp;

}  // namespace sim
