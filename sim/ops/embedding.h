#pragma once

#include <cstdint>
#include <vector>

#include "sim/ops/operation.h"

namespace sim {

struct EmbeddingOptions {
  std::vector<std::int32_t> labels;  ///< the table's row for each output row
};

/// Rows of a table, by index: inputs table (entries x features); output, a row for each label.
extern const Operation embedding;

}  // namespace sim
