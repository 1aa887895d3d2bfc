#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct DropoutOptions {
  double probability = 0;  ///< of an element to become zero
};

/// Dropout: x / (1 - probability) where the element's 32 random bits are at least probability * 2^32, else 0;
/// x itself in evaluation.
extern const Operation dropout;

}  // namespace sim
