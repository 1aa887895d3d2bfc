#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// A bias for every column: inputs x (rows x columns), b (columns); output like x.
extern const Operation bias;

}  // namespace sim
