#include "experiments/master_weights/findings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/frame/parallel.h"

namespace experiments::master_weights {
namespace {

template <class Value>
std::vector<double> values_of(std::span<const TrainingRun> runs, Value value) {
  std::vector<double> values;
  for (const TrainingRun& run : runs) values.push_back(value(run));
  return values;
}

}  // namespace

Outcome outcome_of(std::span<const TrainingRun> runs, std::span<const TrainingRun> with_masters, int steps) {
  const auto loss = [](const TrainingRun& run) { return run.evaluation.loss; };
  const auto accuracy = [](const TrainingRun& run) { return run.evaluation.accuracy; };
  const std::vector<double> losses = values_of(runs, loss), accuracies = values_of(runs, accuracy);
  Outcome outcome{.test_loss = estimate(losses),
                  .test_accuracy = estimate(accuracies),
                  .loss_difference = estimate_difference(values_of(with_masters, loss), losses),
                  .accuracy_difference = estimate_difference(values_of(with_masters, accuracy), accuracies)};
  outcome.diverges_alone =
      !std::isfinite(outcome.test_loss.mean) && std::isfinite(estimate(values_of(with_masters, loss)).mean);
  double measured = 0;
  for (const TrainingRun& run : runs) {
    outcome.exact_exponents += run.exact_exponents;
    outcome.ratios += run.ratios;
    for (const Period& period : run.periods) {
      outcome.updates += period.updates;
      const bool is_last = &period == &run.periods.back();
      if (is_last || 10 * period.step >= 9 * static_cast<std::size_t>(steps))
        outcome.late_updates += period.updates;
      if (!period.changes || period.changes->nonzero == 0) continue;
      outcome.progress += progress_share(*period.changes);
      outcome.norm_ratio += norm_ratio(*period.changes);
      outcome.cosine += period.changes->cosine();
      ++measured;
    }
  }
  for (double* sum : {&outcome.progress, &outcome.norm_ratio, &outcome.cosine}) *sum /= measured;
  return outcome;
}

double ConditionFindings::relative_loss_increase(std::size_t storage) const {
  if (outcomes[storage].diverges_alone) return std::numeric_limits<double>::infinity();
  return outcomes[storage].test_loss.mean / outcomes[masters].test_loss.mean - 1;
}

double ConditionFindings::relative_accuracy_loss(std::size_t storage) const {
  return 1 - outcomes[storage].test_accuracy.mean / outcomes[masters].test_accuracy.mean;
}

std::vector<ConditionFindings> measure(const std::vector<std::unique_ptr<Condition>>& conditions,
                                       const Options& options, Run& run) {
  const auto seeds = static_cast<std::size_t>(options.seeds);
  const std::size_t runs_of_condition = storages.size() * seeds;
  const std::size_t count = conditions.size() * runs_of_condition;
  const auto steps = static_cast<std::size_t>(conditions.front()->setup().steps());
  std::vector<ConditionFindings> findings;
  for (const auto& condition : conditions) {
    findings.push_back({.condition = condition.get(),
                        .runs = std::vector(storages.size(), std::vector<TrainingRun>(seeds)),
                        .outcomes = {}});
  }
  const auto settings_of = [&](std::size_t storage, std::size_t seed) {
    return RunSettings{.storage = storages[storage],
                       .seed = options.training.seed + seed,
                       .loss_scale_log2 = options.loss_scale_log2,
                       .measure_every = options.measure_every};
  };
  {
    // What does not fit into memory is said before hours of what does.
    const SideBySide bodies(runs_at_one_time(count, run.threads()));
    for (const auto& condition : conditions) {
      for (std::size_t storage = 0; storage < storages.size(); ++storage)
        trainer_of(condition->setup(), settings_of(storage, 0));
    }
  }
  {
    Progress progress = run.progress("training", count * steps);
    parallel_for_each(count, run.threads(), [&](std::size_t i) {
      ConditionFindings& found = findings[i / runs_of_condition];
      const std::size_t storage = i % runs_of_condition / seeds, seed = i % seeds;
      found.runs[storage][seed] = train(found.condition->setup(), settings_of(storage, seed), progress);
    });
  }
  for (ConditionFindings& found : findings) {
    for (const std::vector<TrainingRun>& runs : found.runs)
      found.outcomes.push_back(outcome_of(runs, found.runs[masters], static_cast<int>(steps)));
  }
  return findings;
}

}  // namespace experiments::master_weights
