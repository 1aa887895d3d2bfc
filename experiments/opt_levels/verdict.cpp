#include "experiments/opt_levels/verdict.h"

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
#include "experiments/training/glossary.h"

namespace experiments::opt_levels {
namespace {

int decimals(const Findings& found) {
  return found.is_classifier() ? 2 : 5;
}

double factor(const Findings& found) {
  return found.is_classifier() ? 100 : 1;
}

std::string with_unit(const Findings& found, const Estimate& quality) {
  return fmt::format("{}{}", with_interval(quality, factor(found), decimals(found)),
                     found.is_classifier() ? " % test accuracy" : " test loss");
}

/// Recipes by what the intervals of their differences to the reference tell.
struct Judgements {
  std::vector<std::string> worse = {}, better = {}, open = {}, diverged = {};
};

/// What the runs of one recipe say, held against those of the reference.
void judge(Judgements& judgements, const Findings& found, const SeedGroup& group, const SeedGroup& other) {
  const std::string& name = group.policy;
  const Estimate difference = found.difference(group, other);
  if (group.diverged_runs() > 0) {
    judgements.diverged.push_back(name);
  } else if (!difference.is_judged() || !difference.excludes_zero()) {
    judgements.open.push_back(name);
  } else {
    (found.is_classifier() == (difference.mean > 0) ? judgements.better : judgements.worse).push_back(name);
  }
}

/// "worse: a, b; not told from it: c".
std::string text_of(const Judgements& judgements) {
  std::vector<std::string> clauses;
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty()) clauses.push_back(fmt::format("{}: {}", what, fmt::join(names, ", ")));
  };
  add("better", judgements.better);
  add("not told from it", judgements.open);
  add("worse", judgements.worse);
  add("without a finite loss", judgements.diverged);
  return fmt::format("{}", fmt::join(clauses, "; "));
}

bool has_enough_seeds(const Findings& found) {
  return static_cast<std::size_t>(found.options.seeds) >= Estimate::enough_values;
}

/// Whether the reference's accuracy is one that guessing reaches: at most three standard deviations of the share of n
/// test examples that p = 1 / classes names by chance, sqrt(p (1 - p) / n), above p.
bool has_learnt_nothing(const Findings& found) {
  const auto* images = dynamic_cast<const sim::ImageDataset*>(&found.setup.dataset());
  if (!found.is_classifier() || images == nullptr) return false;
  const double p = 1.0 / images->classes(), n = static_cast<double>(images->test_size());
  return found.at_default(0).estimate("final_accuracy").mean <= p + 3 * std::sqrt(p * (1 - p) / n);
}

std::string accuracy_paragraph(const Findings& found) {
  Judgements judgements;
  for (std::size_t i = 1; i < found.recipes.size(); ++i)
    judge(judgements, found, found.at_default(i), found.at_default(0));
  const std::string reached = fmt::format(
      "{} (FP32) reaches {}{}.", reference, with_unit(found, found.at_default(0).estimate(found.quality())),
      has_learnt_nothing(found) ? fmt::format(", as guessing does: in {} steps it has learnt nothing, so "
                                              "that differences to it say nothing",
                                              found.setup.budget().steps)
                                : "");
  if (found.recipes.size() == 1) return reached;
  if (!has_enough_seeds(found))
    return fmt::format("{} Whether anything differs from it is judged from {} seeds on.", reached,
                       Estimate::enough_values);
  return fmt::format("{} Against it, by 95 % t-intervals of the paired differences, {}.", reached,
                     text_of(judgements));
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
  const bool narrows =
      std::ranges::any_of(others, [](const Recipe& recipe) { return recipe.policy.operands.narrows(); });
  return fmt::format(
      "At a batch of {} the others hold between {} ({}) and {} ({}) of its {:.2f} MiB, temporaries left "
      "out.{}",
      found.setup.budget().batch, percent(share_of(least)), least.name, percent(share_of(most)), most.name,
      static_cast<double>(found.budget_bytes) / 0x1p20,
      narrows
          ? " FP8 and FP4 save nothing more: these recipes narrow what is multiplied, and keep tensors in "
            "bfloat16."
          : "");
}

std::string equal_bytes_paragraph(const Findings& found) {
  Judgements to_default, to_same_batch;
  std::vector<std::pair<int, std::size_t>> batches;  // with the group of the reference that has it
  for (std::size_t i = 1; i < found.recipes.size(); ++i) {
    const EqualBytes& equal = found.equal_bytes[i];
    if (equal.batch.batch == 0) continue;
    const SeedGroup& grown = found.groups[equal.runs].group;
    batches.emplace_back(equal.batch.batch, equal.reference);
    judge(to_default, found, grown, found.at_default(0));
    judge(to_same_batch, found, grown, found.groups[equal.reference].group);
  }
  if (batches.empty()) return {};
  const auto [least, most] = std::ranges::minmax(batches);
  const SeedGroup& control = found.groups[most.second].group;
  std::string text =
      fmt::format("In the same bytes fit batches of {} to {}, trained {}. {} itself is then at {} with {}.",
                  least.first, most.first, found.equal_bytes_rule(), reference,
                  with_unit(found, control.estimate(found.quality())), most.first);
  if (has_enough_seeds(found)) {
    text += fmt::format(" Against {} with {}, {}. Against {} with the same batch, {}.", reference,
                        found.setup.budget().batch, text_of(to_default), reference, text_of(to_same_batch));
  }
  return text;
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
         with_interval(group.estimate(found.quality()), factor(found), decimals(found)),
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
  std::vector<std::string> paragraphs{accuracy_paragraph(found), divergence_paragraph(found),
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
