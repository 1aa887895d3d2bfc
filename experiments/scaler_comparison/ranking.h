#pragma once
/// Strategies in the order of their ranks, regime by regime.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/frame/confidence.h"
#include "experiments/scaler_comparison/criteria.h"
#include "experiments/scaler_comparison/findings.h"

namespace experiments::scaler_comparison {

/// What one run came to.
struct RunOutcome {
  /// relative_error: its mean over measured applied steps.
  /// lost_steps: skipped ones, without those that no scale would have saved, and those that were not made
  /// because the scaler ended the run.
  /// recovery_steps: mean_recovery_steps(); does not apply to a strategy without one S that it moves by
  /// itself (factors of layers or casts, unit scaling). Of several losses with a scaler each it is that of
  /// the first.
  /// All are infinite where the final loss is not finite: such a network is of no use, whatever its gradients
  /// were.
  CriterionValues values = {};
  std::size_t skipped_steps = 0;
  std::size_t unsavable_steps = 0;  ///< of these, not finite at any scale
  std::size_t lost_steps = 0;
  std::vector<Recovery> recoveries;
  double lowest_scale_log2 = 0;
  double highest_scale_log2 = 0;
};

/// The outcome of a run that was to have `steps` steps.
RunOutcome outcome_of(const TrainingRun& run, std::size_t steps, const Disturbances& disturbances);

/// A strategy in one regime.
struct Contender {
  const Strategy* strategy;
  std::vector<RunOutcome> outcomes;              ///< in the order of its runs
  std::array<Estimate, criteria.size()> values;  ///< over the seeds
  Estimate excess_loss;                          ///< final loss less that of FP32, in pairs of the same seed
  Estimate relative_excess;                      ///< their ratio less 1
  Standing standing = {};

  CriterionValues means() const;
  double unfinished_recoveries() const;  ///< a run
};

/// What there is to report of one regime.
struct RegimeFindings {
  Regime regime;
  std::vector<Strategy> strategies;  ///< the reference first
  std::vector<Contender>
      contenders;  ///< all but the reference, best rank first, else in the order of strategies

  const Strategy& fp32() const { return strategies.front(); }
};

/// The runs, which must outlive it, stand regime by regime. Where FP32 has not learnt, final losses do not count in ranks.
/// `setup` is that of calm runs.
std::vector<RegimeFindings> by_regime(const std::vector<TrainingRun>& runs, const TrainingSetup& setup,
                                      const Disturbances& disturbances);

/// The strategies by the mean of their ranks over the regimes, best first.
std::vector<std::string> best_first(const std::vector<RegimeFindings>& regimes);

/// What there is to report of all regimes.
struct RankingFindings {
  const TrainingSetup& setup;  ///< of calm runs
  const Options& options;
  std::vector<RegimeFindings> regimes;

  /// Network, data, policy, steps and seeds in a sentence.
  std::string setting() const;
};

/// For --help, of regimes other than calm alone.
Outputs ranking_outputs();
/// Writes tables, summary, figures and verdict of regimes other than calm alone.
void report_ranking(Run& run, const RankingFindings& found);

/// Strategies x regimes as heat maps, from ranking.csv: the mean of the ranks, and each criterion for itself.
void draw_ranking(Run& run, const RankingFindings& found);

}  // namespace experiments::scaler_comparison
