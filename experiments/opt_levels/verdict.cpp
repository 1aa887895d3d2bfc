#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/frame/confidence.h"
#include "experiments/frame/text_table.h"
#include "experiments/opt_levels/findings.h"
#include "experiments/training/glossary.h"
#include "experiments/training/judgements.h"
#include "experiments/training/reference_check.h"

namespace experiments::opt_levels {
namespace {

int decimals(const Findings& found) {
  return found.is_classifier() ? 2 : 5;
}

double factor(const Findings& found) {
  return found.is_classifier() ? 100 : 1;
}

/// Adds what the runs of one recipe say, held against others.
void judge(Judgements& judgements, const Findings& found, const SeedGroup& group, const SeedGroup& other) {
  if (group.diverged_runs() > 0)
    judgements.diverged.push_back(group.policy);
  else if (other.diverged_runs() > 0)
    judgements.incomparable.push_back(group.policy);
  else
    judgements.add(group.policy, found.difference(group, other), !found.is_classifier());
}

bool has_enough_seeds(const Findings& found) {
  return static_cast<std::size_t>(found.options.seeds) >= Estimate::enough_values;
}

/// Which recipes cost accuracy, or loss.
std::string answer(const Findings& found) {
  if (const std::string reason = reason_not_to_compare(found.at_default(0), found.setup); !reason.empty())
    return fmt::format("What the recipes cost cannot be said: {}.", reason);
  if (found.recipes.size() == 1) return fmt::format("There is nothing to compare: {} ran alone.", reference);
  if (!has_enough_seeds(found))
    return fmt::format("Whether a recipe costs anything is judged from {} seeds on.",
                       Estimate::enough_values);
  Judgements judgements;
  for (std::size_t i = 1; i < found.recipes.size(); ++i)
    judge(judgements, found, found.at_default(i), found.at_default(0));
  return fmt::format("{}.", judgements.text("FP32"));
}

bool same_losses(const RunGroup& a, const RunGroup& b) {
  for (std::size_t i = 0; i < a.runs.size(); ++i) {
    if (!std::ranges::equal(a.runs[i].steps, b.runs[i].steps, {}, &sim::StepRecord::loss,
                            &sim::StepRecord::loss))
      return false;
  }
  return true;
}

/// Which recipes come to the same numbers on this network.
std::string same_paragraph(const Findings& found) {
  std::vector<std::string> sets;
  std::vector<bool> told(found.recipes.size());
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    std::vector<std::string> same{found.recipes[i].name};
    for (std::size_t j = i + 1; j < found.recipes.size(); ++j) {
      if (told[j] || !same_losses(found.groups[i], found.groups[j])) continue;
      same.push_back(found.recipes[j].name);
      told[j] = true;
    }
    if (same.size() > 1) sets.push_back(fmt::format("{}", fmt::join(same, " = ")));
  }
  if (sets.empty()) return {};
  return fmt::format("The same losses to the last bit at every step on this network: {}.",
                     fmt::join(sets, "; "));
}

std::string divergence_paragraph(const Findings& found) {
  std::vector<std::string> clauses;
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    const double earliest = earliest_nonfinite_step(found.at_default(i));
    if (earliest == 0) continue;
    const std::vector<double> steps = found.at_default(i).values("first_nonfinite_step");
    const auto finite = std::ranges::count(steps, 0.0);
    const auto runs = std::ssize(steps);
    clauses.push_back(fmt::format("of {} from step {} on{}", found.recipes[i].name, earliest,
                                  finite == 0 ? "" : fmt::format(" in {} runs of {}", runs - finite, runs)));
  }
  if (clauses.empty()) return {};
  return fmt::format("Training losses are not finite {}.", fmt::join(clauses, ", "));
}

double bytes_share(const Findings& found, std::size_t recipe) {
  return found.at_default(recipe).estimate("held_bytes").mean /
         found.at_default(0).estimate("held_bytes").mean;
}

std::string bytes_paragraph(const Findings& found) {
  const auto share_of = [&](const Recipe& recipe) {
    return bytes_share(found, static_cast<std::size_t>(&recipe - found.recipes.data()));
  };
  const std::span<const Recipe> others = std::span(found.recipes).subspan(1);
  const Recipe& least = *std::ranges::min_element(others, {}, share_of);
  const Recipe& most = *std::ranges::max_element(others, {}, share_of);
  const std::string held =
      share_of(least) == share_of(most)
          ? fmt::format("{} {} {} of the bytes of FP32.", others.size() == 1 ? least.name : "All recipes",
                        others.size() == 1 ? "holds" : "hold", percent(share_of(least)))
          : fmt::format("{} holds the fewest bytes and {} the most: {} and {} of those of FP32.", least.name,
                        most.name, percent(share_of(least)), percent(share_of(most)));
  const bool narrows =
      std::ranges::any_of(others, [](const Recipe& recipe) { return recipe.policy.operands.narrows(); });
  return held +
         (narrows ? " FP8 and FP4 save nothing more than bfloat16: these recipes narrow what is multiplied, "
                    "and keep tensors in bfloat16."
                  : "");
}

std::string equal_bytes_paragraph(const Findings& found) {
  Judgements to_default, to_same_batch;
  std::vector<int> batches;
  for (std::size_t i = 1; i < found.recipes.size(); ++i) {
    const EqualBytes& equal = found.equal_bytes[i];
    if (equal.batch.batch == 0) continue;
    const SeedGroup& grown = found.groups[equal.runs].group;
    batches.push_back(equal.batch.batch);
    judge(to_default, found, grown, found.at_default(0));
    judge(to_same_batch, found, grown, found.groups[equal.reference].group);
  }
  if (batches.empty()) return {};
  const auto [least, most] = std::ranges::minmax(batches);
  std::string text = least == most
                         ? fmt::format("A batch of {} fits in the bytes of FP32.", least)
                         : fmt::format("Batches of {} to {} fit in the bytes of FP32.", least, most);
  if (has_enough_seeds(found) && reason_not_to_compare(found.at_default(0), found.setup).empty()) {
    text += fmt::format(" With these, trained {}, {}; {}.", found.equal_bytes_rule(), to_default.text("FP32"),
                        to_same_batch.text("FP32 with the same batch"));
  }
  return text;
}

/// What an all-reduce that rounds costs each recipe; empty where none does.
std::string all_reduce_paragraph(const Findings& found) {
  if (found.controls.empty()) return {};
  return all_reduce_cost_sentence(found.options.parallel.choice(), found.all_reduce_costs(), found.quality());
}

TextTable verdict_table(const Findings& found) {
  const std::string_view unit = found.is_classifier() ? "accuracy, %" : "loss";
  TextTable table{.columns = {"recipe", "scaler", std::string(unit), "against O0", "skipped", "flushed",
                              "of the norm", "gradient error", "bytes", "batch in O0's", "there, against O0"},
                  .rows = {},
                  .notes = {notes::of_the_norm}};
  const auto difference_text = [&](const SeedGroup& group) {
    return signed_with_interval(found.difference(group, found.at_default(0)), factor(found), decimals(found));
  };
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    const SeedGroup& group = found.at_default(i);
    const EqualBytes& equal = found.equal_bytes[i];
    const double error = group.estimate("mean_relative_error").mean;
    table.rows.push_back(
        {group.policy, group.scaler,
         found.is_classifier()
             ? percent_with_interval(group.values(found.quality()), decimals(found))
             : with_interval(group.estimate(found.quality()), factor(found), decimals(found)),
         i == 0 ? "-" : difference_text(group), fmt::format("{:.4g}", group.estimate("skipped_steps").mean),
         percent(group.estimate("mean_fraction_flushed").mean),
         percent(group.estimate("mean_norm_share_flushed").mean),
         std::isfinite(error) ? fmt::format("{:.2g}", error) : "-", percent(bytes_share(found, i)),
         fmt::format("{}", equal.batch.batch),
         i == 0 || equal.batch.batch == 0 ? "-" : difference_text(found.groups[equal.runs].group)});
  }
  return table;
}

}  // namespace

void write_verdict(RunRecord& record, const Findings& found) {
  std::vector<std::string> paragraphs{answer(found), all_reduce_paragraph(found), divergence_paragraph(found),
                                      same_paragraph(found)};
  if (found.recipes.size() > 1) {
    paragraphs.push_back(bytes_paragraph(found));
    paragraphs.push_back(equal_bytes_paragraph(found));
  }
  for (const std::string& paragraph : paragraphs) {
    if (!paragraph.empty()) record.verdict(paragraph);
  }
  record.verdict(verdict_table(found).text());
  record.verdict(
      fmt::format("{} Differences are in {}; ± and [ ]: 95 % t-intervals over the seeds, each "
                  "uncorrected for their number.",
                  found.setting(), found.is_classifier() ? "percentage points" : "the loss"));
}

}  // namespace experiments::opt_levels
