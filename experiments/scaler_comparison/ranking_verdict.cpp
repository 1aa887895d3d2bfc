#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/frame/text_table.h"
#include "experiments/scaler_comparison/ranking_record.h"
#include "fp16/names.h"
#include "sim/loss_scaling/registry.h"

namespace experiments::scaler_comparison {
namespace {

/// Of so many strategies at either end a regime's table tells.
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

/// "reaches a test loss of 0.046 ± 0.001".
std::string loss_of(const Strategy& fp32) {
  const Estimate loss = fp32.estimate("final_loss");
  return std::isfinite(loss.mean) ? "reaches a test loss of " + value_text(loss)
                                  : "ends without a finite test loss";
}

std::string excess_text(const Contender& contender, const Strategy& fp32) {
  const double percent = 100 / fp32.estimate("final_loss").mean;
  const Estimate& excess = contender.excess_loss;
  if (!std::isfinite(percent * excess.mean)) return "inf";
  std::string text = fmt::format("{:+.1f}", percent * excess.mean);
  if (excess.is_judged())
    text += fmt::format(" [{:.1f}, {:.1f}]", percent * excess.lower(), percent * excess.upper());
  return text + " %";
}

void add_rows(TextTable& table, const RegimeFindings& regime) {
  const std::size_t count = regime.contenders.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i >= shown_at_an_end && i + shown_at_an_end < count) continue;
    const Contender& c = regime.contenders[i];
    std::vector<std::string> row{std::string(name_of(regime.regime)), fmt::format("{:g}", c.standing.rank),
                                 c.strategy->label, fmt::format("{:.1f}", c.standing.mean_of_ranks)};
    for (const Estimate& value : c.values) row.push_back(value_text(value));
    row.push_back(excess_text(c, regime.fp32()));
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

double mean_skipped(const Contender& contender) {
  double sum = 0;
  for (const RunOutcome& outcome : contender.outcomes) sum += static_cast<double>(outcome.skipped_steps);
  return sum / static_cast<double>(contender.outcomes.size());
}

std::string reason_of_divergence(const Contender& contender) {
  const Strategy& strategy = *contender.strategy;
  return fmt::format("{} of {} runs left without a finite loss{}", strategy.group.diverged_runs(),
                     strategy.runs.size(),
                     mean_skipped(contender) == 0
                         ? "; it skips no step, so that updates that were not finite went into the weights"
                         : "");
}

/// "; 3 of 3 runs were ended, that of seed 0 after 50 steps: <why>"; nothing where none was.
std::string endings(const Contender& contender) {
  const Strategy& strategy = *contender.strategy;
  for (const TrainingRun* run : strategy.runs) {
    if (run->result.abort_reason.empty()) continue;
    return fmt::format("; {} of {} runs were ended, that of seed {} after {} steps: {}",
                       strategy.group.aborted_runs(), strategy.runs.size(), run->seed, run->steps.size(),
                       run->result.abort_reason);
  }
  return {};
}

std::string conduct(const Contender& contender, const Strategy& fp32) {
  if (contender.strategy->group.diverged_runs() > 0) return reason_of_divergence(contender);
  const CriterionValues means = contender.means();
  std::string text =
      fmt::format("{}, its gradients were off by {}, {:.3g} steps were lost", scale_range(contender),
                  percent(means[criterion::relative_error]), means[criterion::lost_steps]);
  if (!std::isnan(means[criterion::recovery_steps]))
    text += fmt::format(", a recovery took {:.3g} steps", means[criterion::recovery_steps]);
  if (contender.unfinished_recoveries() > 0)
    text += fmt::format(" ({:.2g} a run were not over at its end)", contender.unfinished_recoveries());
  return fmt::format("{}, final loss {} against FP32{}", text, excess_text(contender, fp32),
                     endings(contender));
}

/// Those that share the rank of `contender`.
std::vector<std::string> equals_of(const Contender& contender, const RegimeFindings& regime) {
  std::vector<std::string> labels;
  for (const Contender& c : regime.contenders) {
    if (c.standing.rank == contender.standing.rank) labels.push_back(c.strategy->label);
  }
  return labels;
}

std::string both_ends(const RegimeFindings& regime, const Disturbances& disturbances) {
  const Contender &first = regime.contenders.front(), &last = regime.contenders.back();
  std::string text = fmt::format("{} ({}): FP32 {}; first {}", name_of(regime.regime),
                                 description_of(regime.regime, disturbances), loss_of(regime.fp32()),
                                 fmt::join(equals_of(first, regime), ", "));
  if (first.standing.rank == last.standing.rank) return text + '.';
  const std::vector<std::string> losers = equals_of(last, regime);
  text += fmt::format("; last {}.", fmt::join(losers, ", "));
  return fmt::format("{} Of {} ({}): {}.", text, last.strategy->label, rule_of(*last.strategy),
                     conduct(last, regime.fp32()));
}

}  // namespace

std::string RankingFindings::setting() const {
  const Findings calm{
      .setup = setup, .options = options, .runs = {}, .strategies = regimes.front().strategies};
  return calm.setting();
}

void write_ranking_verdict(RunRecord& record, const RankingFindings& found) {
  for (const RegimeFindings& regime : found.regimes)
    record.verdict(both_ends(regime, found.options.disturbances));
  record.verdict(ends_of(found.regimes).text());
  record.verdict(fmt::format(
      "The {} at either end of each regime; all are in ranking.csv. Rank: by the mean of the ranks in "
      "gradient error, lost steps, recovery and final loss, as far as they apply; ties share their places. "
      "Ranks go by the means over the seeds: where intervals overlap, the order may be chance. A constant S "
      "has nothing to recover from. inf: without a finite final loss a strategy is last in all; without an "
      "applied step to measure, in gradient error.",
      shown_at_an_end));
  if (std::ranges::find(found.regimes, Regime::spiky, &RegimeFindings::regime) != found.regimes.end()) {
    record.verdict(
        "In spiky runs what a scaler skips are the outliers themselves, which FP32 has to take: losses below "
        "that of FP32 are no gain in precision.");
  }
  record.verdict(found.setting() +
                 (found.options.seeds > 1 ? " ±, [ ]: 95 % t-intervals over the seeds." : ""));
}

}  // namespace experiments::scaler_comparison
