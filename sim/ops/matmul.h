#pragma once

#include "sim/ops/operation.h"

namespace sim {

/// A matrix product: inputs a (m x k), b (k x n); output m x n.
extern const Operation matmul;

}  // namespace sim
