#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct PowOptions {
  double exponent = 2;
};

/// Each element to a constant exponent.
extern const Operation pow;

}  // namespace sim
