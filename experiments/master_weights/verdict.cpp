#include "experiments/master_weights/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/frame/text_table.h"
#include "experiments/master_weights/record.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/glossary.h"

namespace experiments::master_weights {
namespace {

std::string loss_text(const Outcome& outcome) {
  return std::isfinite(outcome.test_loss.mean) ? fmt::format("{:.4g}", outcome.test_loss.mean) : "diverged";
}

TextTable conditions_table(const std::vector<ConditionFindings>& findings) {
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

std::string rule_sentence(const std::vector<ConditionFindings>& findings) {
  constexpr int precision = storages[fp16_nearest].format.precision;
  const RatioHistogram ratios = all_ratios(findings, fp16_nearest);
  const auto share = [&](int first, int last) {
    const auto [updates, swallowed] = ratios.sum(first, last);
    return updates == 0 ? "none (there were none)" : percent(share_of(updates, swallowed));
  };
  return fmt::format(
      "FP16 weights rounded to nearest swallow {} of the updates above 2^-11 of the weight, {} of those "
      "between 2^-12 and 2^-11 and {} of those below.",
      share(0, precision), share(precision, precision + 1), share(precision + 1, RatioHistogram::octaves));
}

std::string listed(const std::vector<std::string>& texts) {
  return texts.empty() ? "nowhere" : fmt::format("{}", fmt::join(texts, "; "));
}

/// Where a storage is worse than masters, and by how much.
std::string harm(const std::vector<ConditionFindings>& findings, std::size_t storage) {
  std::vector<std::string> harmed;
  for (const ConditionFindings& found : findings) {
    if (!found.outcomes[storage].is_harmed()) continue;
    const double increase = found.relative_loss_increase(storage);
    harmed.push_back(
        fmt::format("{} ({})", found.condition->label(),
                    std::isfinite(increase) ? fmt::format("{:+.1f} %", 100 * increase) : "diverged"));
  }
  return listed(harmed);
}

/// Where masters are worse than training in FP32.
std::string harm_of_masters(const std::vector<ConditionFindings>& findings) {
  std::vector<std::string> harmed;
  for (const ConditionFindings& found : findings) {
    const Estimate& difference = found.outcomes[reference].loss_difference;
    const bool diverges_alone = std::isfinite(found.outcomes[reference].test_loss.mean) &&
                                !std::isfinite(found.outcomes[masters].test_loss.mean);
    if (diverges_alone || (difference.is_judged() && difference.upper() < 0))
      harmed.push_back(found.condition->label());
  }
  return listed(harmed);
}

std::string harm_sentence(const std::vector<ConditionFindings>& findings) {
  return fmt::format(
      "Without masters the test loss is higher, beyond what the seeds explain: {}. With FP32 masters, whose "
      "forward pass sees FP16 copies, it is higher than all in FP32: {}. The share of swallowed updates "
      "alone does not tell where: it also counts weights whose updates hardly matter. Progress, how far the "
      "change of all weights goes along the exact update, counts each by its size.",
      harm(findings, fp16_nearest), harm_of_masters(findings));
}

std::string alternatives_sentence(const std::vector<ConditionFindings>& findings) {
  std::vector<double> progress, cosines;
  for (const ConditionFindings& found : findings) {
    progress.push_back(found.outcomes[fp16_stochastic].progress);
    cosines.push_back(found.outcomes[fp16_stochastic].cosine);
  }
  return fmt::format(
      "Rounded stochastically, FP16 weights make {} to {} of the exact progress, along with noise (cosine "
      "down to {:.2f}); the loss is higher than with masters: {}. With bfloat16 weights rounded to nearest: "
      "{}; stochastically: {}.",
      percent(std::ranges::min(progress)), percent(std::ranges::max(progress)), std::ranges::min(cosines),
      harm(findings, fp16_stochastic), harm(findings, bf16_nearest), harm(findings, bf16_stochastic));
}

/// The most that FP16 weights cost, and what FP16 updates would lose.
std::string worst_sentence(const std::vector<ConditionFindings>& findings) {
  const ConditionFindings& worst = worst_case(findings, fp16_nearest);
  const bool is_classifier = worst.condition->setup().model().is_classifier();
  const Outcome &with = worst.outcomes[masters], &without = worst.outcomes[fp16_nearest];
  const std::string cost =
      is_classifier ? fmt::format("a test accuracy of {} instead of {}: {} of it is lost",
                                  percent(without.test_accuracy.mean), percent(with.test_accuracy.mean),
                                  percent(worst.relative_accuracy_loss(fp16_nearest)))
                    : fmt::format("a test loss of {} instead of {}", loss_text(without), loss_text(with));
  std::vector<double> flushed;
  for (const ConditionFindings& found : findings) {
    const fp16::ExponentHistogram& exact = found.outcomes[masters].exact_exponents;
    flushed.push_back(share_of_nonzero(exact, exact.flushed_at_scale(0)));
  }
  return fmt::format(
      "At worst, under {}, FP16 weights mean {}. Formed in FP16, {} to {} of the updates would be zero (up "
      "to 2^-25) before they meet a weight.",
      worst.condition->label(), cost, percent(std::ranges::min(flushed)), percent(std::ranges::max(flushed)));
}

}  // namespace

void write_verdict(RunRecord& record, const std::vector<ConditionFindings>& findings,
                   const std::string& setting) {
  const bool judged = findings.front().runs.front().size() >= Estimate::enough_values;
  if (judged) {
    record.verdict(rule_sentence(findings) + " " + harm_sentence(findings));
    record.verdict(alternatives_sentence(findings) + " " + worst_sentence(findings));
  } else {
    record.verdict(rule_sentence(findings) +
                   " With fewer than three seeds nothing is said of what that does to the loss.");
  }
  record.verdict(conditions_table(findings).text());
  record.verdict(
      fmt::format("{} Test losses, means over the seeds; *: higher than with masters by a paired t-interval "
                  "of 95 %, uncorrected for their number. Swallowed, late (last tenth of the steps) and "
                  "progress: of FP16, nearest.",
                  setting));
}

}  // namespace experiments::master_weights
