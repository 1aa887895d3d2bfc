#pragma once
/// What scaler_comparison writes down and draws of disturbed runs.

#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/frame/record.h"
#include "experiments/scaler_comparison/ranking.h"
#include "experiments/scaler_comparison/strategies.h"

namespace experiments::scaler_comparison {

/// What there is to report of all regimes.
struct RankingFindings {
  const TrainingSetup& setup;  ///< of calm runs
  const Options& options;
  std::vector<RegimeFindings> regimes;

  /// Network, data, policy, steps and seeds in a sentence.
  std::string setting() const;
};

/// ranking.csv: a row for each regime and strategy; runs.csv: one for each run; recoveries.csv: one for each
/// recovery; scales.csv: one for each step.
void write_ranking_tables(RunRecord& record, const RankingFindings& found);

/// Means over the seeds, as <regime>.<strategy>.<key>.
void write_ranking_summary(RunRecord& record, const RankingFindings& found);

/// For each regime the best and the worst, and what became of the last.
void write_ranking_verdict(RunRecord& record, const RankingFindings& found);

/// Strategies x regimes as heat maps, from ranking.csv: the mean of the ranks, and each criterion for itself.
void draw_ranking(Run& run, const RankingFindings& found);

}  // namespace experiments::scaler_comparison
