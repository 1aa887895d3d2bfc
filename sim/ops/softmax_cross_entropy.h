#pragma once

#include <cstdint>
#include <vector>

#include "sim/ops/operation.h"

namespace sim {

struct SoftmaxCrossEntropyOptions {
  std::vector<std::int32_t> labels;  ///< a class per row, -1 for rows left out
  double normaliser = 0;             ///< what the sum is divided by; 0 means the number of rows not left out
};

/// Cross entropy of classes: inputs logits, rows of classes. Output, a scalar: the sum of -log
/// softmax(row)[label] over the normaliser (NaN where all rows are left out). Sums along a row and over rows
/// in the interleaved order, rows left out counting as zeros. Saved: the probabilities.
extern const Operation softmax_cross_entropy;

}  // namespace sim
