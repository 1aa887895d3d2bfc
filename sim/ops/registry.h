#pragma once

#include <span>

#include "sim/ops/operation.h"

namespace sim {

/// Every operation. A new one is NAME.h, NAME.cpp and its row in registry.cpp.
std::span<const Operation* const> operations();

}  // namespace sim
