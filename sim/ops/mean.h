#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The mean of all elements, a scalar: the interleaved sum over their number.
extern const Operation mean;

}  // namespace sim
