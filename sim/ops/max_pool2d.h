#pragma once

#include "sim/ops/operation.h"
#include "sim/ops/pooling_options.h"

namespace sim {

/// The largest value of each window: inputs x (NCHW). Windows lie next to each other; the rest at the right
/// and at the bottom is left out. Options: PoolingOptions.
extern const Operation max_pool2d;

}  // namespace sim
