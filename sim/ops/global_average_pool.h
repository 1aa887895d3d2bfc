#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// The mean of each plane: inputs x (NCHW); output N x C, summed in the interleaved order.
extern const Operation global_average_pool;

}  // namespace sim
