#pragma once

#include "sim/ops/attention_options.h"
#include "sim/ops/operation.h"

namespace sim {

/// Values mixed by attention: inputs p ((batch * heads) x context x context), v ((batch * context) x width).
/// Output: p v for every sequence and head, (batch * context) x width. Options: AttentionOptions.
extern const Operation attention_context;

}  // namespace sim
