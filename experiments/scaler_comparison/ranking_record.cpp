#include "experiments/scaler_comparison/ranking_record.h"

#include <fmt/format.h>

#include "experiments/training/instruments.h"
#include "sim/tensor/log2.h"

namespace experiments::scaler_comparison {
namespace {

void write_ranking(RunRecord& record, const RankingFindings& found) {
  std::vector<std::string> columns{"regime",
                                   "rank",
                                   "strategy",
                                   "mean_of_ranks",
                                   "aborted_runs",
                                   "diverged_runs",
                                   "unfinished_recoveries"};
  for (const Criterion& criterion : criteria) {
    for (const char* suffix : {"", "_lower", "_upper", "_rank"})
      columns.push_back(std::string(criterion.key) + suffix);
  }
  columns.insert(columns.end(), {"excess_loss", "excess_loss_lower", "excess_loss_upper", "fp32_final_loss"});
  Table& table = record.table("ranking", columns);
  for (const RegimeFindings& regime : found.regimes) {
    for (const Contender& c : regime.contenders) {
      const Strategy& strategy = *c.strategy;
      std::vector<Value> row{name_of(regime.regime),
                             c.standing.rank,
                             strategy.name,
                             c.standing.mean_of_ranks,
                             strategy.group.aborted_runs(),
                             strategy.group.diverged_runs(),
                             c.unfinished_recoveries()};
      for (std::size_t i = 0; i < criteria.size(); ++i) {
        const Estimate& value = c.values[i];
        row.insert(row.end(), {value.mean, value.lower(), value.upper(), c.standing.ranks[i]});
      }
      const Estimate& excess = c.excess_loss;
      row.insert(row.end(),
                 {excess.mean, excess.lower(), excess.upper(), regime.fp32().estimate("final_loss").mean});
      table.row(row);
    }
  }
}

/// Calls visit(regime, run, its outcome), the reference's runs included.
template <class Visit>
void for_each_run(const RankingFindings& found, Visit&& visit) {
  const auto steps = static_cast<std::size_t>(found.setup.steps());
  for (const RegimeFindings& regime : found.regimes) {
    for (const Strategy& strategy : regime.strategies) {
      for (const TrainingRun* run : strategy.runs)
        visit(name_of(regime.regime), *run, outcome_of(*run, steps, found.options.disturbances));
    }
  }
}

void write_runs(RunRecord& record, const RankingFindings& found) {
  Table& table =
      record.table("runs", {"regime", "strategy", "policy", "scaler", "seed", "steps", "skipped_steps",
                            "unsavable_steps", "lost_steps", "recovery_steps", "relative_error", "final_loss",
                            "lowest_scale_log2", "highest_scale_log2", "final_scale_log2", "abort_reason"});
  for_each_run(found, [&](std::string_view regime, const TrainingRun& run, const RunOutcome& outcome) {
    const CellResult& result = run.result;
    table.row({regime, run.strategy, run.policy, run.scaler, run.seed, run.steps.size(),
               outcome.skipped_steps, outcome.unsavable_steps, outcome.lost_steps,
               mean_recovery_steps(outcome.recoveries), result.value("mean_relative_error"),
               result.value("final_loss"), outcome.lowest_scale_log2, outcome.highest_scale_log2,
               result.value("final_scale_log2"), result.abort_reason});
  });
}

void write_recoveries(RunRecord& record, const RankingFindings& found) {
  Table& table =
      record.table("recoveries", {"regime", "strategy", "seed", "step", "recovery_steps", "complete"});
  for_each_run(found, [&](std::string_view regime, const TrainingRun& run, const RunOutcome& outcome) {
    for (const Recovery& recovery : outcome.recoveries)
      table.row({regime, run.strategy, run.seed, recovery.step, recovery.steps, int{recovery.complete}});
  });
}

void write_scales(RunRecord& record, const RankingFindings& found) {
  Table& table = record.table("scales", {"regime", "strategy", "seed", "step", "loss", "scale_log2",
                                         "learning_rate", "disturbed", "decision"});
  for_each_run(found, [&](std::string_view regime, const TrainingRun& run, const RunOutcome&) {
    for (const sim::StepRecord& step : run.steps) {
      table.row({regime, run.strategy, run.seed, step.step, step.loss, sim::log2_of(step.scale),
                 step.learning_rate, int{is_disturbed(run.regime, step.step, found.options.disturbances)},
                 sim::name_of(step.decision)});
    }
  });
}

}  // namespace

void write_ranking_tables(RunRecord& record, const RankingFindings& found) {
  write_ranking(record, found);
  write_runs(record, found);
  write_recoveries(record, found);
  write_scales(record, found);
}

void write_ranking_summary(RunRecord& record, const RankingFindings& found) {
  for (const RegimeFindings& regime : found.regimes) {
    const std::string prefix = std::string(name_of(regime.regime)) + '.';
    write_estimate(record, prefix + std::string(reference) + ".final_loss",
                   regime.fp32().estimate("final_loss"));
    for (const Contender& c : regime.contenders) {
      const std::string key = prefix + c.strategy->name + '.';
      record.summary(key + "rank", c.standing.rank);
      record.summary(key + "mean_of_ranks", c.standing.mean_of_ranks);
      for (std::size_t i = 0; i < criteria.size(); ++i)
        write_estimate(record, key + std::string(criteria[i].key), c.values[i]);
      write_estimate(record, key + "excess_loss", c.excess_loss);
      record.summary(key + "unfinished_recoveries", c.unfinished_recoveries());
      record.summary(key + "aborted_runs", c.strategy->group.aborted_runs());
      record.summary(key + "diverged_runs", c.strategy->group.diverged_runs());
    }
  }
}

}  // namespace experiments::scaler_comparison
