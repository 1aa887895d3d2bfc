#pragma once
/// The elementary functions of binary32 and binary64, under a name that tells them from the operations.

#include "fp16/elementary.h"
#include "fp16/elementary_pow.h"

namespace sim {

namespace elementary = fp16;

}  // namespace sim
