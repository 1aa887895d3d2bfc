#include "experiments/scaler_comparison/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "experiments/training/instruments.h"
#include "experiments/training/reference_check.h"
#include "fp16/names.h"
#include "sim/loss_scaling/registry.h"
#include "sim/tensor/log2.h"

namespace experiments::scaler_comparison {
namespace {

constexpr double worst = std::numeric_limits<double>::infinity();
constexpr double does_not_apply = std::numeric_limits<double>::quiet_NaN();

/// The kind of skips that occur at any scale, an index of skip_kinds.
constexpr std::size_t at_any_scale = 1;

bool moves_one_scale(const TrainingRun& run) {
  if (run.strategy == reference) return false;
  return names::find_by_name(sim::scalers(), "scaler", names::name_in(run.strategy)).kind ==
         sim::ScalerKind::global;
}

std::vector<ScaleStep> scale_steps(const TrainingRun& run, const Disturbances& disturbances) {
  std::vector<ScaleStep> steps;
  for (const sim::StepRecord& step : run.steps) {
    steps.push_back({.scale_log2 = sim::log2_of(step.scale),
                     .disturbed = is_disturbed(run.regime, step.step, disturbances),
                     .skipped = step.skipped()});
  }
  return steps;
}

CriterionValues values_of(const TrainingRun& run, const RunOutcome& outcome) {
  const auto finite_or_worst = [](double value) { return std::isfinite(value) ? value : worst; };
  CriterionValues values{finite_or_worst(run.result.value("mean_relative_error")),
                         static_cast<double>(outcome.lost_steps), mean_recovery_steps(outcome.recoveries),
                         finite_or_worst(run.result.value("final_loss"))};
  if (!moves_one_scale(run)) values[criterion::recovery_steps] = does_not_apply;
  if (values[criterion::final_loss] == worst) values.fill(worst);
  return values;
}

Contender contender_of(const Strategy& strategy, const Strategy& fp32, std::size_t steps,
                       const Disturbances& disturbances) {
  const std::vector<double> losses = strategy.group.values("final_loss"),
                            of_fp32 = fp32.group.values("final_loss");
  Contender contender{.strategy = &strategy,
                      .outcomes = {},
                      .values = {},
                      .excess_loss = estimate_difference(of_fp32, losses),
                      .relative_excess = estimate_relative_difference(of_fp32, losses)};
  for (const TrainingRun* run : strategy.runs)
    contender.outcomes.push_back(outcome_of(*run, steps, disturbances));
  for (std::size_t i = 0; i < criteria.size(); ++i) {
    std::vector<double> of_runs;
    for (const RunOutcome& outcome : contender.outcomes) of_runs.push_back(outcome.values[i]);
    contender.values[i] = estimate(of_runs);
  }
  return contender;
}

/// `are_losses_told`: whether final losses say anything; else they do not count.
void rank(std::vector<Contender>& contenders, bool are_losses_told) {
  std::vector<CriterionValues> means;
  for (const Contender& contender : contenders) {
    CriterionValues& values = means.emplace_back(contender.means());
    if (!are_losses_told && values[criterion::final_loss] != worst)
      values[criterion::final_loss] = does_not_apply;
  }
  const std::vector<Standing> found = standings(means);
  for (std::size_t i = 0; i < contenders.size(); ++i) contenders[i].standing = found[i];
  std::ranges::stable_sort(contenders, {}, [](const Contender& c) { return c.standing.rank; });
}

}  // namespace

RunOutcome outcome_of(const TrainingRun& run, std::size_t steps, const Disturbances& disturbances) {
  SkipTally skips;
  for (const sim::StepRecord& step : run.steps) skips.add(step);
  const std::vector<ScaleStep> scales = scale_steps(run, disturbances);
  const auto [lowest, highest] = std::ranges::minmax(scales, {}, &ScaleStep::scale_log2);
  RunOutcome outcome{
      .skipped_steps = static_cast<std::size_t>(std::ranges::count_if(scales, &ScaleStep::skipped)),
      .unsavable_steps = skips.kinds[at_any_scale].count,
      .recoveries = recoveries(scales, run.result.value("final_scale_log2")),
      .lowest_scale_log2 = lowest.scale_log2,
      .highest_scale_log2 = highest.scale_log2};
  outcome.lost_steps = outcome.skipped_steps - outcome.unsavable_steps + steps - run.steps.size();
  outcome.values = values_of(run, outcome);
  return outcome;
}

CriterionValues Contender::means() const {
  CriterionValues means;
  std::ranges::transform(values, means.begin(), &Estimate::mean);
  return means;
}

double Contender::unfinished_recoveries() const {
  double count = 0;
  for (const RunOutcome& outcome : outcomes)
    count += static_cast<double>(std::ranges::count(outcome.recoveries, false, &Recovery::complete));
  return count / static_cast<double>(outcomes.size());
}

std::vector<RegimeFindings> by_regime(const std::vector<TrainingRun>& runs, const TrainingSetup& setup,
                                      const Disturbances& disturbances) {
  const auto steps = static_cast<std::size_t>(setup.steps());
  std::vector<RegimeFindings> regimes;
  for (auto first = runs.begin(); first != runs.end();) {
    const auto last =
        std::find_if(first, runs.end(), [&](const TrainingRun& run) { return run.regime != first->regime; });
    regimes.push_back({.regime = first->regime, .strategies = by_strategy({first, last}), .contenders = {}});
    first = last;
  }
  for (RegimeFindings& regime : regimes) {
    for (const Strategy& strategy : regime.strategies) {
      if (!strategy.is_reference())
        regime.contenders.push_back(contender_of(strategy, regime.fp32(), steps, disturbances));
    }
    rank(regime.contenders, reason_not_to_compare(regime.fp32().group, setup).empty());
  }
  return regimes;
}

std::vector<std::string> best_first(const std::vector<RegimeFindings>& regimes) {
  std::map<std::string_view, double> ranks;
  for (const RegimeFindings& regime : regimes) {
    for (const Contender& contender : regime.contenders)
      ranks[contender.strategy->name] += contender.standing.rank;
  }
  std::vector<std::string> names;
  for (const Contender& contender : regimes.front().contenders) names.push_back(contender.strategy->name);
  std::ranges::stable_sort(names, {}, [&](const std::string& name) { return ranks[name]; });
  return names;
}

}  // namespace experiments::scaler_comparison
