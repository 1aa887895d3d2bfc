#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "experiments/master_weights/findings.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/glossary.h"
#include "experiments/training/instruments.h"

namespace experiments::master_weights {
namespace {

constexpr const char* classifiers = "classifiers only";

double fraction_flushed(const fp16::ExponentHistogram& exact_updates) {
  return share_of_nonzero(exact_updates, exact_updates.flushed_at_scale(0));
}

/// A storage under one condition.
struct OutcomeRow {
  const ConditionFindings& found;
  std::size_t storage;

  const Condition& condition() const { return *found.condition; }
  const Outcome& outcome() const { return found.outcomes[storage]; }
  bool is_classifier() const { return condition().setup().model().is_classifier(); }
};

const TableOf<OutcomeRow> conditions_table{
    .name = "conditions",
    .rows = "each storage of the weights under each condition",
    .columns = {
        {"condition", "", [](auto& r) { return r.condition().name(); }},
        {"optimizer", "", [](auto& r) { return r.condition().training().optimizer; }},
        {"learning_rate", "1", [](auto& r) { return *r.condition().training().learning_rate; }},
        {"schedule", "", [](auto& r) { return r.condition().training().schedule; }},
        {"storage", "", [](auto& r) { return storages[r.storage].name; }},
        {"seeds", "seeds", [](auto& r) { return r.outcome().test_loss.count; }},
        {"test_loss", "1", [](auto& r) { return r.outcome().test_loss.mean; }},
        {"test_loss_half_width", "1", [](auto& r) { return r.outcome().test_loss.half_width; }},
        {"loss_difference_to_masters", "1", [](auto& r) { return r.outcome().loss_difference.mean; }},
        {"loss_difference_half_width", "1", [](auto& r) { return r.outcome().loss_difference.half_width; }},
        {"test_accuracy", "1", [](auto& r) { return r.outcome().test_accuracy.mean; }},
        {"accuracy_difference_to_masters", "1", [](auto& r) { return r.outcome().accuracy_difference.mean; }},
        {"accuracy_difference_half_width", "1",
         [](auto& r) { return r.outcome().accuracy_difference.half_width; }},
        {"fraction_swallowed", "1", [](auto& r) { return fraction_swallowed(r.outcome().updates); }},
        {"fraction_swallowed_in_last_tenth", "1",
         [](auto& r) { return fraction_swallowed(r.outcome().late_updates); }},
        {"progress", "1", [](auto& r) { return r.outcome().progress; }},
        {"norm_ratio", "1", [](auto& r) { return r.outcome().norm_ratio; }},
        {"cosine", "1", [](auto& r) { return r.outcome().cosine; }},
        {"fraction_updates_below_2^-24", "1",
         [](auto& r) { return fraction_below_smallest_subnormal(r.outcome().exact_exponents); }},
        {"fraction_updates_flushed_in_fp16", "1",
         [](auto& r) { return fraction_flushed(r.outcome().exact_exponents); }}}};

/// A bin of updates by how small they are beside their weights.
struct RatioRow {
  std::string_view condition;
  const WeightStorage& storage;
  std::size_t bin;
  RatioHistogram::Bin counts;

  double from() const { return RatioHistogram::lower_border(bin); }
  double to() const { return RatioHistogram::lower_border(bin + 1); }
  double expected(Significands significands) const {
    return expected_swallowed_share((from() + to()) / 2, storage, significands);
  }
};

const TableOf<RatioRow> ratios_table{
    .name = "swallowed_by_ratio",
    .rows = "each ratio of weights to their updates, for each storage, under each condition and under all",
    .columns = {
        {"condition", "", &RatioRow::condition},
        {"storage", "", [](auto& r) { return r.storage.name; }},
        {"ratio_from", "1", &RatioRow::from},
        {"ratio_to", "1", &RatioRow::to},
        {"updates", "updates", [](auto& r) { return r.counts.updates; }},
        {"swallowed", "updates", [](auto& r) { return r.counts.swallowed; }},
        {"fraction_swallowed", "1", [](auto& r) { return share_of(r.counts.updates, r.counts.swallowed); }},
        {"fraction_expected_uniform", "1", [](auto& r) { return r.expected(Significands::uniform); }},
        {"fraction_expected_logarithmic", "1",
         [](auto& r) { return r.expected(Significands::logarithmic); }}}};

struct PeriodRow {
  OutcomeRow of;
  std::uint64_t seed;
  const Period& period;
  sim::TwinComparison changes = period.changes.value_or(sim::TwinComparison());
};

const TableOf<PeriodRow> steps_table{
    .name = "steps",
    .rows = "each measured step and those up to the next",
    .columns = {{"condition", "", [](auto& r) { return r.of.condition().name(); }},
                {"storage", "", [](auto& r) { return storages[r.of.storage].name; }},
                {"seed", "", &PeriodRow::seed},
                {"step", "steps", [](auto& r) { return r.period.step; }},
                {"learning_rate", "1", [](auto& r) { return r.period.learning_rate; }},
                {"training_loss", "1", [](auto& r) { return r.period.training_loss; }},
                {"fraction_swallowed", "1", [](auto& r) { return fraction_swallowed(r.period.updates); }},
                {"progress", "1", [](auto& r) { return progress_share(r.changes); }},
                {"norm_ratio", "1", [](auto& r) { return norm_ratio(r.changes); }},
                {"cosine", "1", [](auto& r) { return r.changes.cosine(); }}}};

void write_tables(RunRecord& record, const std::vector<ConditionFindings>& findings, const Options& options) {
  const auto add_outcome = conditions_table.start(record);
  const auto add_period = steps_table.start(record);
  for (const ConditionFindings& found : findings) {
    for (std::size_t i = 0; i < storages.size(); ++i) {
      add_outcome({found, i});
      for (std::size_t seed = 0; seed < found.runs[i].size(); ++seed) {
        for (const Period& period : found.runs[i][seed].periods)
          add_period({{found, i}, options.training.seed + seed, period});
      }
    }
  }
  const auto add_bin = ratios_table.start(record);
  const auto add_bins = [&](std::string_view condition, std::size_t storage, const RatioHistogram& ratios) {
    for (std::size_t bin = 0; bin < RatioHistogram::size; ++bin) {
      if (ratios.bins()[bin].updates != 0) add_bin({condition, storages[storage], bin, ratios.bins()[bin]});
    }
  };
  for (std::size_t i = 0; i < storages.size(); ++i) {
    add_bins("all", i, all_ratios(findings, i));
    for (const ConditionFindings& found : findings)
      add_bins(found.condition->name(), i, found.outcomes[i].ratios);
  }
}

/// A storage under all conditions.
struct StorageRow {
  const std::vector<ConditionFindings>& findings;
  std::size_t storage;
  RatioHistogram ratios = all_ratios(findings, storage);
  OutcomeRow worst = {worst_case(findings, storage), storage};

  /// The share of updates with 2^(p + first) <= |w|/|d| < 2^(p + last), p the precision; first and last are limited to 0
  /// and all octaves.
  double swallowed(int first, int last) const {
    const int p = storages[storage].format.precision;
    const auto [updates, swallowed] =
        ratios.sum(std::max(p + first, 0), std::min(p + last, RatioHistogram::octaves));
    return share_of(updates, swallowed);
  }
};
constexpr int all = RatioHistogram::octaves;

const SummaryOf<StorageRow> storages_summary{
    {{"<storage>.swallowed_below_2^p",
      "share swallowed of the updates d of normal weights w with |w|/|d| < 2^p, p the precision, of all "
      "conditions",
      [](auto& r) { return r.swallowed(-all, 0); }},
     {"<storage>.swallowed_2^p_to_2^(p+1)", "of those with |w|/|d| between 2^p and 2^(p+1)",
      [](auto& r) { return r.swallowed(0, 1); }},
     {"<storage>.swallowed_above_2^(p+1)", "of those with a larger |w|/|d|",
      [](auto& r) { return r.swallowed(1, all); }},
     {"<storage>.worst_condition", "where the storage costs most, in accuracy or else in loss",
      [](auto& r) { return r.worst.condition().name(); }},
     {"<storage>.worst_loss_increase", "there, test loss over that with FP32 masters, less 1",
      [](auto& r) { return r.worst.found.relative_loss_increase(r.storage); }},
     {"<storage>.worst_accuracy_loss", "there, share of the mean test accuracy with FP32 masters",
      [](auto& r) {
        return r.worst.is_classifier() ? std::optional(r.worst.found.relative_accuracy_loss(r.storage))
                                       : std::nullopt;
      },
      classifiers}}};

const SummaryOf<fp16::ExponentHistogram> updates_summary{
    {{"<condition>.updates_below_2^-24", "share of the non-zero exact updates of FP32 masters",
      fraction_below_smallest_subnormal},
     {"<condition>.updates_flushed_in_fp16", "share of these up to 2^-25, which FP16 rounds to zero",
      fraction_flushed}}};

const SummaryOf<OutcomeRow> outcomes_summary{
    {{"<condition>.<storage>.test_loss", "mean over the seeds, in FP32",
      [](auto& r) { return r.outcome().test_loss.mean; }},
     {"<condition>.<storage>.test_accuracy", "mean over the seeds, in FP32",
      [](auto& r) {
        return r.is_classifier() ? std::optional(r.outcome().test_accuracy.mean) : std::nullopt;
      },
      classifiers},
     {"<condition>.<storage>.loss_increase",
      "test loss over that with FP32 masters and the same seed, less 1, mean over the seeds",
      [](auto& r) {
        Estimate increase = r.outcome().relative_loss;
        increase.mean = r.found.relative_loss_increase(r.storage);
        return increase;
      }},
     {"<condition>.<storage>.swallowed",
      "share of the non-zero updates that left the weight as it was, of all steps",
      [](auto& r) { return fraction_swallowed(r.outcome().updates); }},
     {"<condition>.<storage>.swallowed_late", "share of these in the last tenth of the steps",
      [](auto& r) { return fraction_swallowed(r.outcome().late_updates); }},
     {"<condition>.<storage>.progress",
      "<change, exact change> / <exact, exact>, mean over the measured steps",
      [](auto& r) { return r.outcome().progress; }},
     {"<condition>.<storage>.norm_ratio", "||change|| / ||exact change||, mean over the measured steps",
      [](auto& r) { return r.outcome().norm_ratio; }},
     {"<condition>.<storage>.cosine", "between the change and the exact change, mean over the measured steps",
      [](auto& r) { return r.outcome().cosine; }}}};

void write_summary(RunRecord& record, const std::vector<ConditionFindings>& findings) {
  for (std::size_t i = masters + 1; i < storages.size(); ++i)
    storages_summary.write(record, {findings, i}, {storages[i].name});
  for (const ConditionFindings& found : findings) {
    const std::string& name = found.condition->name();
    updates_summary.write(record, found.outcomes[masters].exact_exponents, {name});
    for (std::size_t i = 0; i < storages.size(); ++i)
      outcomes_summary.write(record, {found, i}, {name, storages[i].name});
  }
}

std::string loss_text(const Outcome& outcome) {
  return std::isfinite(outcome.test_loss.mean) ? fmt::format("{:.4g}", outcome.test_loss.mean) : "diverged";
}

TextTable verdict_table(const std::vector<ConditionFindings>& findings) {
  TextTable table{
      .columns = {"condition", "swallowed", "late", "progress"},
      .rows = {},
      .notes = {notes::swallowed, "late: swallowed updates of the last tenth of the steps.",
                "progress: how far the change of all weights went along the exact update; 100 % with "
                "FP32 masters."}};
  for (const WeightStorage& storage : storages) table.columns.emplace_back(storage.title);
  for (const ConditionFindings& found : findings) {
    const Outcome& fp16 = found.outcomes[fp16_nearest];
    table.rows.push_back({found.condition->label(), percent(fraction_swallowed(fp16.updates)),
                          percent(fraction_swallowed(fp16.late_updates)), percent(fp16.progress)});
    for (const Outcome& outcome : found.outcomes)
      table.rows.back().push_back(loss_text(outcome) +
                                  (outcome.is_harmed() && !outcome.diverges_alone ? "*" : ""));
  }
  return table;
}

/// Whether there are losses to judge storages by.
bool has_standard(const ConditionFindings& found) {
  return std::isfinite(found.outcomes[reference].test_loss.mean) &&
         std::isfinite(found.outcomes[masters].test_loss.mean);
}

/// "under adam 0.001 (+12.3 [9.1, 15.5] %)", or "nowhere": where a storage is worse than masters, and by how much.
std::string harm(const std::vector<ConditionFindings>& findings, std::size_t storage) {
  std::vector<std::string> harmed;
  for (const ConditionFindings& found : findings) {
    if (!has_standard(found) || !found.outcomes[storage].is_harmed()) continue;
    const Outcome& outcome = found.outcomes[storage];
    harmed.push_back(fmt::format(
        "{} ({})", found.condition->label(),
        outcome.diverges_alone ? "diverged" : signed_with_interval(outcome.relative_loss, 100, 1) + " %"));
  }
  return harmed.empty() ? "nowhere" : fmt::format("under {}", fmt::join(harmed, "; "));
}

/// Where masters are worse than training in FP32.
std::string harm_of_masters(const std::vector<ConditionFindings>& findings) {
  std::vector<std::string> harmed;
  for (const ConditionFindings& found : findings) {
    const Estimate& difference = found.outcomes[reference].relative_loss;
    const bool diverges_alone = std::isfinite(found.outcomes[reference].test_loss.mean) &&
                                !std::isfinite(found.outcomes[masters].test_loss.mean);
    if (diverges_alone || (difference.is_judged() && difference.upper() < 0))
      harmed.push_back(found.condition->label());
  }
  return harmed.empty() ? "nowhere" : fmt::format("under {}", fmt::join(harmed, "; "));
}

/// Where FP16 weights need masters.
std::string answer(const std::vector<ConditionFindings>& findings) {
  if (findings.front().runs.front().size() < Estimate::enough_values)
    return fmt::format("Where FP16 weights need FP32 masters is judged from {} seeds on.",
                       Estimate::enough_values);
  std::vector<std::string> unjudged;
  for (const ConditionFindings& found : findings) {
    if (!has_standard(found)) unjudged.push_back(found.condition->label());
  }
  if (unjudged.size() == findings.size())
    return "Where FP16 weights need FP32 masters cannot be said: training in FP32 or with masters diverged.";
  const std::string doubt =
      unjudged.empty() ? ""
                       : fmt::format(" Not judged under {}, where training in FP32 or with masters diverged.",
                                     fmt::join(unjudged, "; "));
  return fmt::format(
      "FP16 weights without FP32 masters end with a higher test loss, beyond what the seeds explain, {}. "
      "bfloat16 weights "
      "do so {}. Rounded stochastically, FP16 weights do so {}, bfloat16 weights {}. FP32 masters with FP16 "
      "copies end "
      "above training all in FP32 {}.{}",
      harm(findings, fp16_nearest), harm(findings, bf16_nearest), harm(findings, fp16_stochastic),
      harm(findings, bf16_stochastic), harm_of_masters(findings), doubt);
}

/// Why: from which size on FP16 weights take updates.
std::string cause(const std::vector<ConditionFindings>& findings) {
  const StorageRow fp16{findings, fp16_nearest};
  return fmt::format(
      "An FP16 weight swallows updates that are too small beside it: {} of those below 2^-12 of the weight "
      "and {} of those "
      "above 2^-11. How many are swallowed does not tell where it hurts, as it also counts weights whose "
      "updates hardly "
      "matter; progress counts each update by its size.",
      percent(fp16.swallowed(1, all)), percent(fp16.swallowed(-all, 0)));
}

std::string setting_of(const std::vector<ConditionFindings>& findings, const Options& options) {
  const Condition& first = *findings.front().condition;
  return fmt::format(
      "{} on {}, batch {}, {}, {}; FP16 model (as of Apex O2), S = 2^{}, FP32 gradients, FP32 "
      "optimizer.",
      options.training.model, first.setup().dataset().name(), *first.training().batch,
      counted(first.setup().steps(), "step"), seeds_text(options.training.seed, options.seeds),
      options.loss_scale_log2);
}

}  // namespace

RatioHistogram all_ratios(const std::vector<ConditionFindings>& findings, std::size_t storage) {
  RatioHistogram all;
  for (const ConditionFindings& found : findings) all += found.outcomes[storage].ratios;
  return all;
}

const ConditionFindings& worst_case(const std::vector<ConditionFindings>& findings, std::size_t storage) {
  const bool is_classifier = findings.front().condition->setup().model().is_classifier();
  return *std::ranges::max_element(findings, {}, [&](const ConditionFindings& found) {
    const double cost =
        is_classifier ? found.relative_accuracy_loss(storage) : found.relative_loss_increase(storage);
    return std::isnan(cost) ? -std::numeric_limits<double>::infinity() : cost;
  });
}

Outputs outputs() {
  return outputs_of(conditions_table, ratios_table, steps_table, storages_summary, updates_summary,
                    outcomes_summary);
}

void report(Run& run, const std::vector<ConditionFindings>& findings, const Options& options) {
  RunRecord& record = run.record();
  write_tables(record, findings, options);
  write_summary(record, findings);
  const std::string setting = setting_of(findings, options);
  draw_figures(run, findings, setting);
  record.verdict(answer(findings));
  record.verdict(cause(findings));
  record.verdict(verdict_table(findings).text());
  record.verdict(
      fmt::format("{} Test losses, means over the seeds; *, [ ]: the test loss over that with masters, by a "
                  "95 % t-interval over pairs of a seed, uncorrected for their number. Swallowed, late (last "
                  "tenth of the steps) and "
                  "progress: of FP16, nearest.",
                  setting));
}

}  // namespace experiments::master_weights
