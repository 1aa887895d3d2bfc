#include "experiments/master_weights/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/training/counted_gradients.h"

namespace experiments::master_weights {
namespace {

void write_conditions(RunRecord& record, const std::vector<ConditionFindings>& findings) {
  Table& table = record.table("conditions", {"condition",
                                             "optimizer",
                                             "learning_rate",
                                             "schedule",
                                             "storage",
                                             "seeds",
                                             "test_loss",
                                             "test_loss_half_width",
                                             "loss_difference_to_masters",
                                             "loss_difference_half_width",
                                             "test_accuracy",
                                             "accuracy_difference_to_masters",
                                             "accuracy_difference_half_width",
                                             "fraction_swallowed",
                                             "fraction_swallowed_in_last_tenth",
                                             "progress",
                                             "norm_ratio",
                                             "cosine",
                                             "fraction_updates_below_2^-24",
                                             "fraction_updates_flushed_in_fp16"});
  for (const ConditionFindings& found : findings) {
    const TrainingOptions& training = found.condition->training();
    for (std::size_t i = 0; i < storages.size(); ++i) {
      const Outcome& outcome = found.outcomes[i];
      table.row({found.condition->name(),
                 training.optimizer,
                 *training.learning_rate,
                 training.schedule,
                 storages[i].name,
                 outcome.test_loss.count,
                 outcome.test_loss.mean,
                 outcome.test_loss.half_width,
                 outcome.loss_difference.mean,
                 outcome.loss_difference.half_width,
                 outcome.test_accuracy.mean,
                 outcome.accuracy_difference.mean,
                 outcome.accuracy_difference.half_width,
                 fraction_swallowed(outcome.updates),
                 fraction_swallowed(outcome.late_updates),
                 outcome.progress,
                 outcome.norm_ratio,
                 outcome.cosine,
                 fraction_below_smallest_subnormal(outcome.exact_exponents),
                 share_of_nonzero(outcome.exact_exponents, outcome.exact_exponents.flushed_at_scale(0))});
    }
  }
}

void write_ratios(Table& table, std::string_view condition, const WeightStorage& storage,
                  const RatioHistogram& ratios) {
  for (std::size_t bin = 0; bin < RatioHistogram::size; ++bin) {
    const auto [updates, swallowed] = ratios.bins()[bin];
    if (updates == 0) continue;
    const double lower = RatioHistogram::lower_border(bin), upper = RatioHistogram::lower_border(bin + 1);
    table.row({condition, storage.name, lower, upper, updates, swallowed, share_of(updates, swallowed),
               expected_swallowed_share((lower + upper) / 2, storage, Significands::uniform),
               expected_swallowed_share((lower + upper) / 2, storage, Significands::logarithmic)});
  }
}

void write_all_ratios(RunRecord& record, const std::vector<ConditionFindings>& findings) {
  Table& table =
      record.table("swallowed_by_ratio",
                   {"condition", "storage", "ratio_from", "ratio_to", "updates", "swallowed",
                    "fraction_swallowed", "fraction_expected_uniform", "fraction_expected_logarithmic"});
  for (std::size_t i = 0; i < storages.size(); ++i) {
    write_ratios(table, "all", storages[i], all_ratios(findings, i));
    for (const ConditionFindings& found : findings)
      write_ratios(table, found.condition->name(), storages[i], found.outcomes[i].ratios);
  }
}

void write_steps(RunRecord& record, const std::vector<ConditionFindings>& findings, const Options& options) {
  Table& table =
      record.table("steps", {"condition", "storage", "seed", "step", "learning_rate", "training_loss",
                             "fraction_swallowed", "progress", "norm_ratio", "cosine"});
  for (const ConditionFindings& found : findings) {
    for (std::size_t i = 0; i < storages.size(); ++i) {
      for (std::size_t seed = 0; seed < found.runs[i].size(); ++seed) {
        for (const Period& period : found.runs[i][seed].periods) {
          const sim::TwinComparison changes = period.changes.value_or(sim::TwinComparison());
          table.row({found.condition->name(), storages[i].name, options.training.seed + seed, period.step,
                     period.learning_rate, period.training_loss, fraction_swallowed(period.updates),
                     progress_share(changes), norm_ratio(changes), changes.cosine()});
        }
      }
    }
  }
}

}  // namespace

void write_tables(RunRecord& record, const std::vector<ConditionFindings>& findings, const Options& options) {
  write_conditions(record, findings);
  write_all_ratios(record, findings);
  write_steps(record, findings, options);
}

void write_summary(RunRecord& record, const std::vector<ConditionFindings>& findings) {
  const bool is_classifier = findings.front().condition->setup().model().is_classifier();
  for (std::size_t i = masters + 1; i < storages.size(); ++i) {
    const int precision = storages[i].format.precision;
    const RatioHistogram ratios = all_ratios(findings, i);
    const auto add = [&](std::string_view key, int first, int last) {
      const auto [updates, swallowed] = ratios.sum(first, last);
      record.summary(fmt::format("{}.{}", storages[i].name, key), share_of(updates, swallowed));
    };
    add("swallowed_below_2^p", 0, precision);
    add("swallowed_2^p_to_2^(p+1)", precision, precision + 1);
    add("swallowed_above_2^(p+1)", precision + 1, RatioHistogram::octaves);
    const ConditionFindings& worst = worst_case(findings, i);
    record.summary(fmt::format("{}.worst_condition", storages[i].name), worst.condition->name());
    record.summary(fmt::format("{}.worst_loss_increase", storages[i].name), worst.relative_loss_increase(i));
    if (is_classifier)
      record.summary(fmt::format("{}.worst_accuracy_loss", storages[i].name),
                     worst.relative_accuracy_loss(i));
  }
  for (const ConditionFindings& found : findings) {
    const fp16::ExponentHistogram& exact = found.outcomes[masters].exact_exponents;
    record.summary(found.condition->name() + ".updates_below_2^-24",
                   fraction_below_smallest_subnormal(exact));
    record.summary(found.condition->name() + ".updates_flushed_in_fp16",
                   share_of_nonzero(exact, exact.flushed_at_scale(0)));
    for (std::size_t i = 0; i < storages.size(); ++i) {
      const Outcome& outcome = found.outcomes[i];
      const auto add = [&](std::string_view key, double value) {
        record.summary(fmt::format("{}.{}.{}", found.condition->name(), storages[i].name, key), value);
      };
      add("test_loss", outcome.test_loss.mean);
      if (is_classifier) add("test_accuracy", outcome.test_accuracy.mean);
      add("loss_increase", found.relative_loss_increase(i));
      add("swallowed", fraction_swallowed(outcome.updates));
      add("swallowed_late", fraction_swallowed(outcome.late_updates));
      add("progress", outcome.progress);
      add("norm_ratio", outcome.norm_ratio);
      add("cosine", outcome.cosine);
    }
  }
}

std::vector<Program::SummaryKey> summary_keys() {
  return {
      {"STORAGE.swallowed_below_2^p",
       "share swallowed of the updates d of normal weights w with |w|/|d| < 2^p, p the precision, of all "
       "conditions"},
      {"STORAGE.swallowed_2^p_to_2^(p+1), STORAGE.swallowed_above_2^(p+1)", "likewise"},
      {"STORAGE.worst_condition", "where the storage costs most, in accuracy or else in loss"},
      {"STORAGE.worst_loss_increase", "there, over the mean test loss with FP32 masters"},
      {"STORAGE.worst_accuracy_loss",
       "there, share of the mean test accuracy with FP32 masters; classifiers only"},
      {"CONDITION.updates_below_2^-24", "share of the non-zero exact updates of FP32 masters"},
      {"CONDITION.updates_flushed_in_fp16", "likewise, up to 2^-25, which FP16 rounds to zero"},
      {"CONDITION.STORAGE.test_loss, .test_accuracy",
       "mean over the seeds, in FP32; accuracy of classifiers only"},
      {"CONDITION.STORAGE.loss_increase", "of the mean test loss, over that with FP32 masters"},
      {"CONDITION.STORAGE.swallowed",
       "share of the non-zero updates that left the weight as it was, of all steps"},
      {"CONDITION.STORAGE.swallowed_late", "likewise, of the last tenth of the steps"},
      {"CONDITION.STORAGE.progress", "<change, exact change> / <exact, exact>, mean over the measured steps"},
      {"CONDITION.STORAGE.norm_ratio", "||change|| / ||exact change||, likewise"},
      {"CONDITION.STORAGE.cosine", "between the change and the exact change, likewise"}};
}

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

double fraction_swallowed(const sim::UpdateCounts& counts) {
  return share_of(counts.updates, counts.swallowed);
}

}  // namespace experiments::master_weights
