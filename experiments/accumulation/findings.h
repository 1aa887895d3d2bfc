#pragma once
/// All that the experiment measures.

#include <string>
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

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict.
void report(Run& run, const Findings& found, const Options& options);

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const std::vector<MeasuredMean>& means, const Options& options,
                  const std::string& setting);

}  // namespace experiments::accumulation
