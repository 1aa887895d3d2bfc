#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The exact GELU of each element: x times the normal distribution function of x.
extern const Operation gelu;

}  // namespace sim
