#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct CastOptions {
  fp16::Format format = fp16::binary32;  ///< of the output
};

/// A cast: the values of its input in another format, rounded once.
extern const Operation cast;

}  // namespace sim
