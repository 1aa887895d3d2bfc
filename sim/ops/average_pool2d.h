#pragma once

#include "sim/ops/operation.h"
#include "sim/ops/pooling_options.h"

namespace sim {

/// The mean of each window: inputs x (NCHW). Windows lie next to each other; the rest at the right and at the
/// bottom is left out. The elements of a window, row by row, are the terms of a column. Options:
/// PoolingOptions.
extern const Operation average_pool2d;

}  // namespace sim
