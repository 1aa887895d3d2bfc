#pragma once

#include "sim/ops/attention_options.h"
#include "sim/ops/operation.h"

namespace sim {

/// Scores of queries against keys: inputs q, k, each (batch * context) x width. Output: (batch * heads) x
/// context x context, for every sequence and head q k^T / sqrt(width / heads), the factor applied to the
/// finished chain before the one rounding. Nothing is masked. Options: AttentionOptions.
extern const Operation attention_scores;

}  // namespace sim
