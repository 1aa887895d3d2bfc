#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/scaler_comparison/ranking.h"
#include "experiments/training/reference_check.h"
#include "fp16/names.h"
#include "sim/loss_scaling/registry.h"
#include "sim/tensor/log2.h"

namespace experiments::scaler_comparison {
namespace {

/// A strategy in one regime.
struct RankingRow {
  const RegimeFindings& regime;
  const Contender& contender;
};

constexpr const char* disturbed = "--regimes other than calm";

TableOf<RankingRow> ranking_table() {
  using Row = RankingRow;
  TableOf<Row> table{
      .name = "ranking",
      .rows = "each strategy in each regime",
      .columns =
          {{"regime", "", [](auto& r) { return name_of(r.regime.regime); }},
           {"rank", "1", [](auto& r) { return r.contender.standing.rank; }},
           {"strategy", "", [](auto& r) { return r.contender.strategy->name; }},
           {"mean_of_ranks", "1", [](auto& r) { return r.contender.standing.mean_of_ranks; }},
           {"aborted_runs", "runs", [](auto& r) { return r.contender.strategy->group.aborted_runs(); }},
           {"diverged_runs", "runs", [](auto& r) { return r.contender.strategy->group.diverged_runs(); }},
           {"unfinished_recoveries", "a run", [](auto& r) { return r.contender.unfinished_recoveries(); }}},
      .when = disturbed};
  for (std::size_t i = 0; i < criteria.size(); ++i) {
    const std::string key(criteria[i].key), unit(criteria[i].unit);
    table.columns.insert(table.columns.end(),
                         {{key, unit, [i](const Row& r) { return r.contender.values[i].mean; }},
                          {key + "_lower", unit, [i](const Row& r) { return r.contender.values[i].lower(); }},
                          {key + "_upper", unit, [i](const Row& r) { return r.contender.values[i].upper(); }},
                          {key + "_rank", "1", [i](const Row& r) { return r.contender.standing.ranks[i]; }}});
  }
  table.columns.insert(
      table.columns.end(),
      {{"excess_loss", "1", [](auto& r) { return r.contender.excess_loss.mean; }},
       {"excess_loss_lower", "1", [](auto& r) { return r.contender.excess_loss.lower(); }},
       {"excess_loss_upper", "1", [](auto& r) { return r.contender.excess_loss.upper(); }},
       {"relative_excess", "1", [](auto& r) { return r.contender.relative_excess.mean; }},
       {"relative_excess_lower", "1", [](auto& r) { return r.contender.relative_excess.lower(); }},
       {"relative_excess_upper", "1", [](auto& r) { return r.contender.relative_excess.upper(); }},
       {"fp32_final_loss", "1", [](auto& r) { return r.regime.fp32().estimate("final_loss").mean; }}});
  return table;
}

/// A run, the reference's included.
struct RunRow {
  std::string_view regime;
  const TrainingRun& run;
  const RunOutcome& outcome;
};

/// The columns that name a run, and more.
template <class Row>
std::vector<Column<Row>> columns_of_run(const std::vector<Column<Row>>& more) {
  return joined<Column<Row>>({{"regime", "", [](auto& r) { return r.regime; }},
                              {"strategy", "", [](auto& r) { return r.run.strategy; }}},
                             more);
}

const TableOf<RunRow> runs_table{
    .name = "runs",
    .rows = "each run",
    .columns = columns_of_run<RunRow>(
        {{"policy", "", [](auto& r) { return r.run.policy; }},
         {"scaler", "", [](auto& r) { return r.run.scaler; }},
         {"seed", "", [](auto& r) { return r.run.seed; }},
         {"steps", "steps", [](auto& r) { return r.run.steps.size(); }},
         {"skipped_steps", "steps", [](auto& r) { return r.outcome.skipped_steps; }},
         {"unsavable_steps", "steps", [](auto& r) { return r.outcome.unsavable_steps; }},
         {"lost_steps", "steps", [](auto& r) { return r.outcome.lost_steps; }},
         {"recovery_steps", "steps", [](auto& r) { return mean_recovery_steps(r.outcome.recoveries); }},
         {"relative_error", "1", [](auto& r) { return r.run.result.value("mean_relative_error"); }},
         {"final_loss", "1", [](auto& r) { return r.run.result.value("final_loss"); }},
         {"lowest_scale_log2", "log2", [](auto& r) { return r.outcome.lowest_scale_log2; }},
         {"highest_scale_log2", "log2", [](auto& r) { return r.outcome.highest_scale_log2; }},
         {"final_scale_log2", "log2", [](auto& r) { return r.run.result.value("final_scale_log2"); }},
         {"abort_reason", "", [](auto& r) { return r.run.result.abort_reason; }}}),
    .when = disturbed};

struct RecoveryRow {
  std::string_view regime;
  const TrainingRun& run;
  const Recovery& recovery;
};

const TableOf<RecoveryRow> recoveries_table{
    .name = "recoveries",
    .rows = "each recovery",
    .columns = columns_of_run<RecoveryRow>(
        {{"seed", "", [](auto& r) { return r.run.seed; }},
         {"step", "steps", [](auto& r) { return r.recovery.step; }},
         {"recovery_steps", "steps", [](auto& r) { return r.recovery.steps; }},
         {"complete", "0 or 1", [](auto& r) { return int{r.recovery.complete}; }}}),
    .when = disturbed};

struct ScaleRow {
  std::string_view regime;
  const TrainingRun& run;
  const sim::StepRecord& step;
  bool disturbed;
};

const TableOf<ScaleRow> scales_table{
    .name = "scales",
    .rows = "each step",
    .columns =
        columns_of_run<ScaleRow>({{"seed", "", [](auto& r) { return r.run.seed; }},
                                  {"step", "steps", [](auto& r) { return r.step.step; }},
                                  {"loss", "1", [](auto& r) { return r.step.loss; }},
                                  {"scale_log2", "log2", [](auto& r) { return sim::log2_of(r.step.scale); }},
                                  {"learning_rate", "1", [](auto& r) { return r.step.learning_rate; }},
                                  {"disturbed", "0 or 1", [](auto& r) { return int{r.disturbed}; }},
                                  {"decision", "", [](auto& r) { return sim::name_of(r.step.decision); }}}),
    .when = disturbed};

void write_tables(RunRecord& record, const RankingFindings& found) {
  const TableOf<RankingRow> ranking = ranking_table();
  const auto add_contender = ranking.start(record);
  const auto add_run = runs_table.start(record);
  const auto add_recovery = recoveries_table.start(record);
  const auto add_scale = scales_table.start(record);
  const Disturbances& disturbances = found.options.disturbances;
  for (const RegimeFindings& regime : found.regimes) {
    const std::string_view name = name_of(regime.regime);
    for (const Contender& contender : regime.contenders) add_contender({regime, contender});
    for (const Strategy& strategy : regime.strategies) {
      for (const TrainingRun* run : strategy.runs) {
        const RunOutcome outcome =
            outcome_of(*run, static_cast<std::size_t>(found.setup.steps()), disturbances);
        add_run({name, *run, outcome});
        for (const Recovery& recovery : outcome.recoveries) add_recovery({name, *run, recovery});
        for (const sim::StepRecord& step : run->steps)
          add_scale({name, *run, step, is_disturbed(run->regime, step.step, disturbances)});
      }
    }
  }
}

const SummaryOf<RegimeFindings> fp32_summary{
    {{"<regime>.fp32.final_loss", "of FP32 in that regime",
      [](auto& r) { return r.fp32().estimate("final_loss"); }, disturbed}}};

SummaryOf<Contender> contender_summary() {
  const std::string prefix = "<regime>.<strategy>.";
  SummaryOf<Contender> summary{
      {{prefix + "rank", "by mean_of_ranks, ties shared", [](auto& c) { return c.standing.rank; }, disturbed},
       {prefix + "mean_of_ranks", "over the criteria that apply",
        [](auto& c) { return c.standing.mean_of_ranks; }, disturbed}}};
  for (std::size_t i = 0; i < criteria.size(); ++i) {
    summary.rows.push_back({prefix + std::string(criteria[i].key), std::string(criteria[i].meaning),
                            [i](const Contender& c) { return c.values[i]; }, disturbed});
  }
  summary.rows = joined<SummaryRow<Contender>>(
      std::move(summary.rows),
      {{prefix + "excess_loss", "final_loss less that of FP32, in pairs of the same seed",
        &Contender::excess_loss, disturbed},
       {prefix + "unfinished_recoveries", "recoveries a run that its end cut off",
        &Contender::unfinished_recoveries, disturbed},
       {prefix + "aborted_runs", "runs that their scaler ended",
        [](auto& c) { return c.strategy->group.aborted_runs(); }, disturbed},
       {prefix + "diverged_runs", "runs that left no finite loss",
        [](auto& c) { return c.strategy->group.diverged_runs(); }, disturbed}});
  return summary;
}

void write_summary(RunRecord& record, const RankingFindings& found) {
  const SummaryOf<Contender> summary = contender_summary();
  for (const RegimeFindings& regime : found.regimes) {
    const std::string_view name = name_of(regime.regime);
    fp32_summary.write(record, regime, {name});
    for (const Contender& c : regime.contenders) summary.write(record, c, {name, c.strategy->name});
  }
}

/// Strategies at either end of a regime that its table shows.
constexpr std::size_t shown_at_an_end = 3;

/// "0.12 ± 0.03"; "inf" for the worst there is, "-" for what does not apply.
std::string value_text(const Estimate& value) {
  if (std::isinf(value.mean)) return "inf";
  if (!std::isfinite(value.mean)) return "-";
  std::string text = fmt::format("{:.3g}", value.mean);
  if (std::isfinite(value.half_width) && value.half_width > 0)
    text += fmt::format(" ± {:.2g}", value.half_width);
  return text;
}

void add_rows(TextTable& table, const RegimeFindings& regime) {
  const std::size_t count = regime.contenders.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i >= shown_at_an_end && i + shown_at_an_end < count) continue;
    const Contender& c = regime.contenders[i];
    std::vector<std::string> row{std::string(name_of(regime.regime)), fmt::format("{:g}", c.standing.rank),
                                 c.strategy->label, fmt::format("{:.1f}", c.standing.mean_of_ranks)};
    for (const Estimate& value : c.values) row.push_back(value_text(value));
    if (c.unfinished_recoveries() > 0)
      row[row.size() - criteria.size() + criterion::recovery_steps].insert(0, "≥ ");
    row.push_back(std::isfinite(c.relative_excess.mean) ? excess_text(c.relative_excess) : "inf");
    row.push_back(fmt::format("{}", c.strategy->group.aborted_runs()));
    table.rows.push_back(std::move(row));
  }
}

TextTable ends_of(const std::vector<RegimeFindings>& regimes) {
  TextTable table{.columns = {"regime", "rank", "strategy", "mean of ranks"}, .rows = {}};
  for (const Criterion& criterion : criteria) table.columns.emplace_back(criterion.title);
  table.columns.insert(table.columns.end(), {"against fp32", "ended"});
  for (const RegimeFindings& regime : regimes) add_rows(table, regime);
  return table;
}

std::string_view rule_of(const Strategy& strategy) {
  return names::find_by_name(sim::scalers(), "scaler", names::name_in(strategy.name)).description;
}

/// The bounds of S over all runs.
std::string scale_range(const Contender& contender) {
  const auto lowest = std::ranges::min(contender.outcomes, {}, &RunOutcome::lowest_scale_log2);
  const auto highest = std::ranges::max(contender.outcomes, {}, &RunOutcome::highest_scale_log2);
  if (lowest.lowest_scale_log2 == highest.highest_scale_log2)
    return fmt::format("S stood at 2^{:.4g}", lowest.lowest_scale_log2);
  return fmt::format("S went between 2^{:.4g} and 2^{:.4g}", lowest.lowest_scale_log2,
                     highest.highest_scale_log2);
}

/// "in 3 of 3 runs the loss does not stay finite, as it skips no step": what became of a strategy.
std::string conduct(const Contender& contender) {
  const Strategy& strategy = *contender.strategy;
  const bool skips = std::ranges::any_of(contender.outcomes, [](auto& o) { return o.skipped_steps > 0; });
  if (const std::size_t diverged = strategy.group.diverged_runs(); diverged > 0) {
    return fmt::format("in {} of {} runs the loss does not stay finite{}", diverged, strategy.runs.size(),
                       skips ? "" : ", as updates that are not finite go into the weights");
  }
  for (const TrainingRun* run : strategy.runs) {
    if (run->result.abort_reason.empty()) continue;
    return fmt::format("{} of {} runs were ended, that of seed {} after {} steps: {}",
                       strategy.group.aborted_runs(), strategy.runs.size(), run->seed, run->steps.size(),
                       run->result.abort_reason);
  }
  return scale_range(contender);
}

/// Those that share the rank of `contender`.
std::string equals_of(const Contender& contender, const RegimeFindings& regime) {
  std::vector<std::string> labels;
  for (const Contender& c : regime.contenders) {
    if (c.standing.rank == contender.standing.rank) labels.push_back(c.strategy->label);
  }
  return fmt::format("{}", fmt::join(labels, ", "));
}

/// Who comes first and last in a regime, and what became of the last.
std::string answer(const RegimeFindings& regime, const RankingFindings& found) {
  const Contender &first = regime.contenders.front(), &last = regime.contenders.back();
  const std::string where =
      fmt::format("In {} runs ({}),", name_of(regime.regime),
                  description_of(regime.regime, found.options.disturbances, found.options.training.schedule));
  const std::string reason = reason_not_to_compare(regime.fp32().group, found.setup);
  if (regime.fp32().group.diverged_runs() > 0)
    return fmt::format("{} what a strategy is worth cannot be said: {}.", where, reason);
  const std::string doubt =
      reason.empty() ? "" : fmt::format(" Final losses say nothing here, and do not count: {}.", reason);
  if (first.standing.rank == last.standing.rank)
    return fmt::format("{} no strategy stands out: {}.{}", where, equals_of(first, regime), doubt);
  const std::string firsts = equals_of(first, regime);
  return fmt::format("{} {} come{} first, {} last. {} ({}): {}.{}", where, firsts,
                     firsts == first.strategy->label ? "s" : "", equals_of(last, regime),
                     last.strategy->label, rule_of(*last.strategy), conduct(last), doubt);
}

void write_verdict(RunRecord& record, const RankingFindings& found) {
  for (const RegimeFindings& regime : found.regimes) record.verdict(answer(regime, found));
  record.verdict(ends_of(found.regimes).text());
  record.verdict(fmt::format(
      "The {} at either end of each regime; all are in ranking.csv. Rank: by the mean of the ranks in "
      "gradient error, lost steps, recovery and final loss, as far as they apply; ties share their places. "
      "Ranks go by the means over the seeds: where intervals overlap, the order may be chance. A constant S "
      "has nothing to recover from; ≥: the end of a run cut a recovery off. inf: without a finite final loss "
      "a strategy is last in all; without an "
      "applied step to measure, in gradient error.",
      shown_at_an_end));
  if (std::ranges::find(found.regimes, Regime::spiky, &RegimeFindings::regime) != found.regimes.end()) {
    record.verdict(
        "In spiky runs what a scaler skips are the outliers themselves, which FP32 has to take: losses below "
        "that of FP32 are no gain in precision.");
  }
  record.verdict(found.setting() +
                 (found.options.seeds > 1
                      ? " ±, [ ]: 95 % t-intervals over the seeds, those in brackets of the "
                        "losses' ratios in pairs of a seed."
                      : ""));
}

}  // namespace

std::string RankingFindings::setting() const {
  const Findings calm{
      .setup = setup, .options = options, .runs = {}, .strategies = regimes.front().strategies};
  return calm.setting();
}

Outputs ranking_outputs() {
  return outputs_of(ranking_table(), runs_table, recoveries_table, scales_table, fp32_summary,
                    contender_summary());
}

void report_ranking(Run& run, const RankingFindings& found) {
  write_tables(run.record(), found);
  write_summary(run.record(), found);
  draw_ranking(run, found);
  write_verdict(run.record(), found);
}

}  // namespace experiments::scaler_comparison
