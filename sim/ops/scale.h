#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct ScaleOptions {
  double forward_factor = 1;
  double backward_factor = 1;
};

/// x times one constant forward, the gradient times another backward.
extern const Operation scale;

}  // namespace sim
