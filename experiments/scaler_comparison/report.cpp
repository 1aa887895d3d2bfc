#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/frame/columns.h"
#include "experiments/frame/curve_table.h"
#include "experiments/frame/text_table.h"
#include "experiments/scaler_comparison/findings.h"
#include "experiments/training/all_reduce_cost.h"
#include "experiments/training/glossary.h"
#include "experiments/training/judgements.h"
#include "experiments/training/reference_check.h"
#include "experiments/training/step_tables.h"

namespace experiments::scaler_comparison {
namespace {

/// Under the names that their strategies have in tables, or in texts.
std::vector<InstrumentedRun> instrumented(std::span<const TrainingRun> runs, std::string TrainingRun::*name) {
  std::vector<InstrumentedRun> result;
  for (const TrainingRun& run : runs)
    result.push_back({.strategy = run.*name,
                      .seed = run.seed,
                      .steps = run.steps,
                      .sites = run.sites,
                      .parameters = run.parameters});
  return result;
}

/// A result of the run; NaN where it has none.
Column<TrainingRun> result_column(const std::string& key) {
  return {key, result_key(key).unit, [key](const TrainingRun& run) {
            return run.result.has(key) ? run.result.value(key) : std::numeric_limits<double>::quiet_NaN();
          }};
}

const TableOf<TrainingRun> runs_table{
    .name = "runs",
    .rows = "each run",
    .columns = {{"strategy", "", &TrainingRun::strategy},
                {"policy", "", &TrainingRun::policy},
                {"scaler", "", &TrainingRun::scaler},
                {"seed", "", &TrainingRun::seed},
                result_column("steps"),
                result_column("skipped_steps"),
                result_column("final_scale_log2"),
                result_column("final_loss"),
                result_column("final_accuracy"),
                {"abort_reason", "", [](const TrainingRun& run) { return run.result.abort_reason; }}}};

void write_tables(RunRecord& record, const Findings& found) {
  const std::vector<InstrumentedRun> runs = instrumented(found.runs, &TrainingRun::strategy);
  runs_table.write(record, found.runs);
  write_steps(record, runs);
  write_layers(record, runs);
  write_skips(record, runs);
  write_parameters(record, runs);
  if (found.options.statistics_every > 0) write_statistics(record, runs);
}

/// "0.046953 ± 0.00066"; large losses by a power of ten.
std::string loss_text(const Estimate& loss) {
  if (!std::isfinite(loss.mean)) return "-";
  std::string text = fmt::format("{:#.5g}", loss.mean);
  if (std::isfinite(loss.half_width)) text += fmt::format(" ± {:.2g}", loss.half_width);
  return text;
}

/// How far a strategy's final loss lies from that of FP32 with the same seed, as a share of the latter.
Estimate relative_excess(const Strategy& strategy, const Strategy& fp32) {
  return estimate_relative_difference(fp32.group.values("final_loss"), strategy.group.values("final_loss"));
}

const SummaryOf<SeedGroup> results_summary{
    result_rows("<strategy>.",
                {"final_loss", "final_accuracy", "steps", "skipped_steps", "scaler_twins", "final_scale_log2",
                 "mean_fraction_flushed", "mean_norm_share_flushed", "mean_relative_error"})};

/// The costs of every strategy but the reference; none where no all-reduce rounds.
std::vector<AllReduceCost> all_reduce_costs(const Findings& found) {
  std::vector<AllReduceCost> costs;
  for (std::size_t i = 0; i < found.controls.size(); ++i)
    costs.push_back({found.strategies[i + 1].label, found.strategies[i + 1].group, found.controls[i].group});
  return costs;
}

constexpr const char* rounding_all_reduce = "--ranks above 1 and an --allreduce that is not in fp32";

const SummaryOf<AllReduceCost> costs_summary{
    {{"<strategy>.all_reduce_excess",
      "final_loss over that of the same run all-reduced in FP32, less 1: mean over pairs of the same seed",
      [](auto& r) { return r.of("final_loss"); }, rounding_all_reduce}}};

struct StrategyRow {
  const Strategy& strategy;
  const Strategy& fp32;
};

const SummaryOf<StrategyRow> strategy_summary{
    {{"<strategy>.loss_excess",
      "final_loss over that of fp32 with the same seed, less 1, mean over the seeds",
      [](auto& r) {
        return r.strategy.is_reference() ? std::nullopt : std::optional(relative_excess(r.strategy, r.fp32));
      }},
     {"<strategy>.aborted_runs", "runs that their scaler ended",
      [](auto& r) { return r.strategy.group.aborted_runs(); }}}};

/// The largest peaks of memory of all runs.
SummaryOf<Strategy> peaks_summary() {
  SummaryOf<Strategy> summary;
  const std::vector<std::string> keys = peak_keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    summary.rows.push_back({"<strategy>." + keys[i], result_key(keys[i]).meaning, [i](const Strategy& s) {
                              std::size_t most = 0;
                              for (const TrainingRun* run : s.runs)
                                most = std::max(most, run->peak_tensor_bytes[i].second);
                              return most;
                            }});
  }
  return summary;
}

void write_summary(RunRecord& record, const Findings& found) {
  for (const Strategy& s : found.strategies) {
    results_summary.write(record, s.group, {s.name});
    strategy_summary.write(record, {s, found.fp32()}, {s.name});
    peaks_summary().write(record, s, {s.name});
  }
  const std::vector<AllReduceCost> costs = all_reduce_costs(found);
  for (std::size_t i = 0; i < costs.size(); ++i)
    costs_summary.write(record, costs[i], {found.strategies[i + 1].name});
}

/// A strategy's excess over FP32's final loss; "-" where it diverged.
std::string excess(const Strategy& strategy, const Strategy& fp32) {
  const Estimate difference = relative_excess(strategy, fp32);
  if (!std::isfinite(difference.mean)) return "-";
  return excess_text(difference);
}

/// Where the strategies end beside FP32, by what the intervals of their differences tell.
struct Ends {
  /// Shares of FP32's loss: within `equivalent` the whole interval must lie for the losses to be called the same, and a
  /// difference that excludes zero is told from `negligible` on.
  static constexpr double equivalent = 0.1, negligible = 0.001;

  std::vector<std::string> clauses;  ///< of those that end elsewhere
  std::vector<std::string> same, unjudged;
  std::vector<std::string> open,
      allowed;  ///< where no difference was found, and up to where there may be one

  static std::string note() {
    return fmt::format(
        "Where FP32 does: the whole 95 % interval of the difference lies within {:g} % of FP32's loss. A "
        "difference of less than {:g} % is not told, even where its interval excludes zero.",
        100 * equivalent, 100 * negligible);
  }

  explicit Ends(const Findings& found) {
    for (const Strategy& s : found.strategies) {
      if (!s.is_reference()) add(s, found);
    }
  }

  void add(const Strategy& s, const Findings& found) {
    const bool is_none = s.name == "none";
    const std::string subject = is_none ? "without loss scaling " + found.options.policy : s.label,
                      name = is_none ? found.options.policy + " without loss scaling" : s.label;
    const Estimate excess = relative_excess(s, found.fp32());
    const double furthest = std::max(std::abs(excess.lower()), std::abs(excess.upper()));
    if (s.group.diverged_runs() > 0) {
      clauses.push_back(subject + " leaves no finite loss");
    } else if (excess.is_judged() && excess.excludes_zero() && furthest >= negligible) {
      clauses.push_back(fmt::format("{} ends {} {} FP32's loss", subject, percent(std::abs(excess.mean)),
                                    excess.mean > 0 ? "above" : "below"));
    } else if (excess.count < Estimate::enough_values || !std::isfinite(furthest)) {
      unjudged.push_back(name);
    } else if (furthest < equivalent) {
      same.push_back(name);
    } else {
      open.push_back(name);
      allowed.push_back(fmt::format("{:.2g}", 100 * furthest));
    }
  }
};

/// Which strategies end where FP32 does.
std::string answer(const Findings& found) {
  if (const std::string reason = reason_not_to_compare(found.fp32().group, found.setup); !reason.empty())
    return fmt::format("What a strategy is worth cannot be said: {}.", reason);
  if (found.options.seeds < static_cast<int>(Estimate::enough_values) &&
      std::ranges::all_of(found.strategies, [](auto& s) { return s.group.diverged_runs() == 0; }))
    return fmt::format("Whether a strategy ends where FP32 does is judged from {} seeds on.",
                       Estimate::enough_values);
  Ends ends(found);
  if (!ends.same.empty())
    ends.clauses.push_back(
        fmt::format("{} end{} where FP32 does", listed(ends.same), ends.same.size() == 1 ? "s" : ""));
  if (!ends.open.empty())
    ends.clauses.push_back(fmt::format("no difference was found of {}; the interval{} up to {} %",
                                       listed(ends.open), ends.open.size() == 1 ? " allows" : "s allow",
                                       listed(ends.allowed)));
  if (!ends.unjudged.empty())
    ends.clauses.push_back(fmt::format("{} cannot be told from FP32 by these seeds", listed(ends.unjudged)));
  std::string text = fmt::format("{}.", fmt::join(ends.clauses, "; "));
  if (text.starts_with("without")) text.front() = 'W';
  return text;
}

/// "500"; of runs that their scaler ended "5, ended", or "252, 1 of 2 ended".
std::string steps_made(const Strategy& s) {
  std::string text = fmt::format("{:.4g}", s.estimate("steps").mean);
  const std::size_t aborted = s.group.aborted_runs();
  if (aborted == 0) return text;
  return text +
         (aborted == s.runs.size() ? ", ended" : fmt::format(", {} of {} ended", aborted, s.runs.size()));
}

TextTable verdict_table(const Findings& found) {
  TextTable table{.columns = {"strategy", "final loss"}, .rows = {}};
  if (found.is_classifier()) table.columns.push_back("accuracy, %");
  table.columns.insert(table.columns.end(), {"against fp32", "steps", "skipped", "final S", "flushed",
                                             "of the norm", "relative error"});
  table.notes = {notes::of_the_norm, notes::relative_error};
  for (const Strategy& s : found.strategies) {
    const auto unless_reference = [&](std::string text) { return s.is_reference() ? "-" : text; };
    std::vector<std::string> row{s.label, loss_text(s.estimate("final_loss"))};
    if (found.is_classifier()) row.push_back(percent_with_interval(s.group.values("final_accuracy"), 2));
    row.push_back(unless_reference(excess(s, found.fp32())));
    row.push_back(steps_made(s));
    row.push_back(unless_reference(fmt::format("{:.4g}", s.estimate("skipped_steps").mean)));
    row.push_back(unless_reference(fmt::format("2^{:.4g}", s.estimate("final_scale_log2").mean)));
    row.push_back(percent(s.estimate("mean_fraction_flushed").mean));
    row.push_back(percent(s.estimate("mean_norm_share_flushed").mean));
    const double relative_error = s.estimate("mean_relative_error").mean;
    row.push_back(std::isfinite(relative_error) ? fmt::format("{:.2g}", relative_error) : "-");
    table.rows.push_back(std::move(row));
  }
  return table;
}

void write_verdict(RunRecord& record, const Findings& found) {
  const std::vector<InstrumentedRun> runs = instrumented(found.runs, &TrainingRun::label);
  const auto first_scaled =
      std::ranges::find_if(runs, [](const InstrumentedRun& run) { return run.strategy != reference; });
  record.verdict(answer(found));
  if (!found.controls.empty()) {
    record.verdict(
        all_reduce_cost_sentence(found.options.parallel.choice(), all_reduce_costs(found), "final_loss"));
  }
  for (const std::string& paragraph :
       {vanishing_sentence(*first_scaled), skips_paragraph(runs), scaler_twins_sentence(runs)}) {
    if (!paragraph.empty()) record.verdict(paragraph);
  }
  record.verdict(verdict_table(found).text());
  for (const TrainingRun& run : found.runs) {
    if (run.result.abort_reason.empty()) continue;
    record.verdict(abort_sentence(run.label, run.seed, run.steps.size(), run.result.abort_reason));
  }
  record.verdict(found.setting() +
                 (found.options.seeds > 1
                      ? " ±, [ ]: 95 % t-intervals over the seeds, those in brackets of the "
                        "losses' ratios in pairs of a seed. " +
                            Ends::note()
                      : ""));
}

}  // namespace

std::string excess_text(const Estimate& relative_excess) {
  return (relative_excess.is_judged() ? signed_with_interval(relative_excess, 100, 1, -1)
                                      : signed_text(100 * relative_excess.mean, 1)) +
         " %";
}

void write_settings(RunRecord& record, const Findings& found) {
  record_settings(record, "optimizer", found.options.training.optimizer,
                  found.runs.front().optimizer_options);
  for (const Strategy& s : found.strategies)
    record_settings(record, "scaler", s.name, s.runs.front()->scaler_options);
}

Outputs calm_outputs() {
  return outputs_of(runs_table, steps_table, layers_table, skips_table, parameters_table, statistics_table,
                    exponents_table, CurveTable::note("loss"), CurveTable::note("scale"), results_summary,
                    strategy_summary, costs_summary, peaks_summary());
}

void report_calm(Run& run, const Findings& found) {
  write_settings(run.record(), found);
  write_tables(run.record(), found);
  write_summary(run.record(), found);
  draw_figures(run, found);
  write_verdict(run.record(), found);
}

}  // namespace experiments::scaler_comparison
