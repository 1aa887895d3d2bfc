#pragma once

#include <cstdint>
#include <vector>

#include "sim/ops/operation.h"

namespace sim {

struct EmbeddingOptions {
  std::vector<std::int32_t> labels = {};  ///< the table's row for each output row
};

/// Rows of a table: inputs table (entries x features). The gradient of an entry is the sum of those of the
/// rows that read it, down their columns in ascending order.
extern const Operation embedding;

}  // namespace sim
