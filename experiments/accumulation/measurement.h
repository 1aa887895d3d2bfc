#pragma once
/// All that the experiment measures.

#include <vector>

#include "experiments/accumulation/accumulators.h"
#include "experiments/accumulation/errors.h"
#include "experiments/accumulation/loss_reduction.h"

namespace experiments::accumulation {

/// One accumulator adding up ones.
struct Ones {
  Accumulator accumulator;
  SumOfOnes sum;
};

struct Findings {
  std::vector<Accumulator> accumulators;  ///< which `errors` points into
  Errors errors;
  std::vector<Ones> ones;  ///< of the accumulators in their order, then of directed_additions()
  std::vector<MeasuredMean> means;
};

Findings measure(const Options& options, Run& run);

}  // namespace experiments::accumulation
