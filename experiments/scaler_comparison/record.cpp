#include "experiments/scaler_comparison/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/frame/confidence.h"
#include "experiments/frame/text_table.h"
#include "experiments/training/glossary.h"
#include "experiments/training/instruments.h"

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

void write_runs(RunRecord& record, const Findings& found) {
  Table& table = record.table("runs", {"strategy", "policy", "scaler", "seed", "steps", "skipped_steps",
                                       "final_scale_log2", "final_loss", "final_accuracy", "abort_reason"});
  for (const TrainingRun& run : found.runs) {
    const CellResult& result = run.result;
    const double accuracy =
        found.is_classifier() ? result.value("final_accuracy") : std::numeric_limits<double>::quiet_NaN();
    table.row({run.strategy, run.policy, run.scaler, run.seed, result.value("steps"),
               result.value("skipped_steps"), result.value("final_scale_log2"), result.value("final_loss"),
               accuracy, result.abort_reason});
  }
}

/// The largest of all runs.
void write_peaks(RunRecord& record, const Strategy& strategy) {
  auto peaks = strategy.runs.front()->peak_tensor_bytes;
  for (const TrainingRun* run : strategy.runs) {
    for (std::size_t i = 0; i < peaks.size(); ++i)
      peaks[i].second = std::max(peaks[i].second, run->peak_tensor_bytes[i].second);
  }
  for (const auto& [key, bytes] : peaks) record.summary(fmt::format("{}.{}", strategy.name, key), bytes);
}

/// "0.046953 ± 0.00066"; large losses by a power of ten.
std::string loss_text(const Estimate& loss) {
  if (!std::isfinite(loss.mean)) return "-";
  std::string text = fmt::format("{:#.5g}", loss.mean);
  if (std::isfinite(loss.half_width)) text += fmt::format(" ± {:.2g}", loss.half_width);
  return text;
}

/// How far a strategy's mean final loss lies from that of FP32, as a share of the latter; the interval is
/// that of the differences of pairs with the same seed.
Estimate relative_excess(const Strategy& strategy, const Strategy& fp32) {
  Estimate difference =
      estimate_difference(fp32.group.values("final_loss"), strategy.group.values("final_loss"));
  const double fp32_loss = fp32.estimate("final_loss").mean;
  difference.mean /= fp32_loss;
  difference.deviation /= fp32_loss;
  difference.half_width /= fp32_loss;
  return difference;
}

/// A strategy's excess over FP32's final loss in per cent, with its 95 % t-interval where there are enough seeds:
/// "+1.2 [-0.3, 2.7] %".
std::string excess(const Strategy& strategy, const Strategy& fp32) {
  const Estimate difference = relative_excess(strategy, fp32);
  if (!std::isfinite(difference.mean)) return "-";
  const auto shown = [](double value) {  // without a sign where only the sign would be left
    return std::abs(100 * value) < 0.05 ? 0.0 : 100 * value;
  };
  std::string text = fmt::format("{:+.1f}", shown(difference.mean));
  if (difference.is_judged())
    text += fmt::format(" [{:.1f}, {:.1f}]", shown(difference.lower()), shown(difference.upper()));
  return text + " %";
}

std::string outcome(const Strategy& s, const Strategy& fp32) {
  const double loss = s.estimate("final_loss").mean;
  if (!std::isfinite(loss)) return fmt::format("{} without a finite loss", s.label);
  const std::string text = fmt::format("{} at {:#.5g}", s.label, loss);
  return std::isfinite(fp32.estimate("final_loss").mean) ? fmt::format("{} ({})", text, excess(s, fp32))
                                                         : text;
}

/// What FP32 and every scaler reach.
std::string headline(const Findings& found) {
  std::vector<std::string> outcomes;
  for (const Strategy& s : found.strategies) {
    if (!s.is_reference()) outcomes.push_back(outcome(s, found.fp32()));
  }
  const Estimate fp32_loss = found.fp32().estimate("final_loss");
  return fmt::format("FP32 {}. Under {}, by scaler: {}.",
                     std::isfinite(fp32_loss.mean) ? "reaches a test loss of " + loss_text(fp32_loss)
                                                   : "ends without a finite test loss",
                     found.options.policy, fmt::join(outcomes, ", "));
}

/// Whether a run without scaling pays for what vanishes at S = 1; empty where no such run was made, or too
/// few of them to judge by.
std::string unscaled_sentence(const Findings& found) {
  const auto unscaled = std::ranges::find(found.strategies, "none", &Strategy::name);
  if (unscaled == found.strategies.end()) return {};
  const Estimate difference =
      estimate_difference(found.fp32().group.values("final_loss"), unscaled->group.values("final_loss"));
  if (unscaled->group.diverged_runs() > 0) return "Without scaling the loss does not stay finite. ";
  if (!difference.is_judged()) return {};
  if (difference.lower() > 0) return "Without scaling the loss ends above FP32's. ";
  if (difference.upper() <= 0) return "Without scaling the loss does not end above FP32's. ";
  return "Whether the loss ends above FP32's without scaling these seeds do not tell. ";
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
    if (found.is_classifier()) row.push_back(with_interval(s.estimate("final_accuracy"), 100, 2));
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

}  // namespace

void write_settings(RunRecord& record, const Findings& found) {
  record_settings(record, "optimizer", found.options.training.optimizer,
                  found.runs.front().optimizer_options);
  for (const Strategy& s : found.strategies)
    record_settings(record, "scaler", s.name, s.runs.front()->scaler_options);
}

void write_tables(RunRecord& record, const Findings& found) {
  const std::vector<InstrumentedRun> runs = instrumented(found.runs, &TrainingRun::strategy);
  write_runs(record, found);
  write_steps(record, runs);
  write_layers(record, runs);
  write_skips(record, runs);
  write_parameters(record, runs);
  if (found.options.statistics_every > 0) write_statistics(record, runs);
}

void write_summary(RunRecord& record, const Findings& found) {
  for (const Strategy& s : found.strategies) {
    for (const auto& [key, value] : s.group.results.front().values)
      write_estimate(record, fmt::format("{}.{}", s.name, key), s.estimate(key));
    if (s.name != reference)
      write_estimate(record, s.name + ".loss_excess", relative_excess(s, found.fp32()));
    record.summary(s.name + ".aborted_runs", s.group.aborted_runs());
    write_peaks(record, s);
  }
}

void write_verdict(RunRecord& record, const Findings& found) {
  const std::vector<InstrumentedRun> runs = instrumented(found.runs, &TrainingRun::label);
  const auto first_scaled =
      std::ranges::find_if(runs, [](const InstrumentedRun& run) { return run.strategy != reference; });
  record.verdict(headline(found));
  const std::string vanishing = vanishing_sentence(*first_scaled);
  for (const std::string& paragraph : {vanishing.empty() ? "" : unscaled_sentence(found) + vanishing,
                                       skips_paragraph(runs), scaler_twins_sentence(runs)}) {
    if (!paragraph.empty()) record.verdict(paragraph);
  }
  record.verdict(verdict_table(found).text());
  for (const TrainingRun& run : found.runs) {
    if (run.result.abort_reason.empty()) continue;
    record.verdict(abort_sentence(run.label, run.seed, run.steps.size(), run.result.abort_reason));
  }
  record.verdict(found.setting() + (found.options.seeds > 1 ? " ±: 95 % t-intervals over the seeds." : ""));
}

}  // namespace experiments::scaler_comparison
