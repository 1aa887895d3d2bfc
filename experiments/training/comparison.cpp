#include "experiments/training/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "experiments/training/all_reduce_cost.h"
#include "experiments/training/glossary.h"
#include "experiments/training/instruments.h"
#include "experiments/training/judgements.h"
#include "experiments/training/reference_check.h"

namespace experiments {
namespace {

/// Losses to be sorted: a mean that is not finite comes last.
double rank_of(const SeedGroup& group) {
  const double loss = group.estimate("final_loss").mean;
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

std::string difference_text(const std::optional<Estimate>& difference, double factor, int decimals) {
  return difference ? signed_with_interval(*difference, factor, decimals) : "-";
}

bool has_twins(const Comparison& comparison) {
  return comparison.groups().front().results.front().has("mean_relative_error");
}

bool has_aborted_runs(const Comparison& comparison) {
  return std::ranges::any_of(comparison.groups(),
                             [](const SeedGroup& group) { return group.aborted_runs() > 0; });
}

TextTable verdict_table(const Comparison& comparison) {
  const bool is_classifier = comparison.is_classifier();
  const bool with_twins = has_twins(comparison), with_endings = has_aborted_runs(comparison);
  TextTable table{.columns = {"policy", "scaler", "final loss"}, .rows = {}};
  if (is_classifier) table.columns.push_back("accuracy, %");
  if (comparison.has_reference())
    table.columns.push_back(is_classifier ? "against fp32, points" : "against fp32");
  table.columns.insert(table.columns.end(), {"skipped", "final S", "swallowed"});
  table.notes.push_back(notes::swallowed);
  if (with_twins) {
    table.columns.insert(table.columns.end(), {"flushed", "of the norm", "relative error"});
    table.notes.insert(table.notes.end(), {notes::of_the_norm, notes::relative_error});
  }
  if (with_endings) table.columns.push_back("end");
  for (const SeedGroup& group : comparison.groups()) {
    std::vector<std::string> row{
        group.policy, group.scaler,
        group.diverged_runs() > 0 ? group.divergence() : with_interval(group.estimate("final_loss"), 1, 5)};
    if (is_classifier) row.push_back(percent_with_interval(group.values("final_accuracy"), 2));
    if (comparison.has_reference()) {
      row.push_back(difference_text(comparison.difference(group, comparison.quality()),
                                    is_classifier ? 100 : 1, is_classifier ? 2 : 5));
    }
    row.push_back(fmt::format("{:.4g}", group.estimate("skipped_steps").mean));
    row.push_back(fmt::format("2^{:.4g}", group.estimate("final_scale_log2").mean));
    row.push_back(percent(group.estimate("fraction_swallowed").mean));
    if (with_twins) {
      const double relative_error = group.estimate("mean_relative_error").mean;
      row.push_back(percent(group.estimate("mean_fraction_flushed").mean));
      row.push_back(percent(group.estimate("mean_norm_share_flushed").mean));
      row.push_back(std::isfinite(relative_error) ? fmt::format("{:.2g}", relative_error) : "-");
    }
    if (with_endings) {
      const std::string ending = group.ending(comparison.setup().steps());
      row.push_back(ending.empty() ? "after the last step" : ending);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string name_of(const SeedGroup& group) {
  return fmt::format("{} with {}", group.policy, group.scaler);
}

bool is_whole(const SeedGroup& group) {
  return group.aborted_runs() == 0 && group.diverged_runs() == 0;
}

/// Which groups end elsewhere than FP32, by more than chance; empty where there is nothing to compare.
std::string answer(const Comparison& comparison) {
  if (comparison.groups().size() == 1) return "";
  if (!comparison.has_reference())
    return "Nothing is judged: differences are to fp32, which --policy does not name.";
  if (comparison.seeds() < Estimate::enough_values)
    return fmt::format("Whether anything differs from fp32 is judged from {} seeds on.",
                       Estimate::enough_values);
  const SeedGroup& fp32 = comparison.groups().front();
  if (const std::string reason = reason_not_to_compare(fp32, comparison.setup());
      is_whole(fp32) && !reason.empty())
    return fmt::format("Nothing is judged: {}.", reason);
  Judgements judgements;
  std::vector<std::string> unjudged;  // with the reason
  for (const SeedGroup& group : comparison.groups()) {
    const std::optional<Estimate> difference = comparison.difference(group, comparison.quality());
    if (!difference) continue;
    if (!is_whole(group) || !is_whole(fp32)) {
      unjudged.push_back(name_of(group) + ", where runs were ended or diverged");
    } else if (!difference->is_judged()) {
      unjudged.push_back(name_of(group) + ", the same in every pair");
    } else {
      judgements.add(name_of(group), *difference, !comparison.is_classifier());
    }
  }
  std::string text;
  if (judgements.judged() > 0) {
    text = fmt::format("{}, by the 95 % t-interval of the difference in test {}, paired over {} seeds{}.",
                       judgements.text("fp32"), comparison.is_classifier() ? "accuracy" : "loss",
                       comparison.seeds(),
                       judgements.judged() > 1 ? " and uncorrected for the number of comparisons" : "");
  }
  if (!unjudged.empty())
    text += fmt::format("{}Not judged against fp32: {}.", text.empty() ? "" : " ", fmt::join(unjudged, "; "));
  return text;
}

/// " ends at a test loss of 0.1"; ": ended by its scaler at step 3 of 500, at a test loss of 0.1"; ": diverged, at no finite
/// test loss".
std::string end_of(const SeedGroup& group, int steps) {
  std::string ending = group.ending(steps);
  const std::string divergence = group.divergence();
  if (!divergence.empty()) ending += (ending.empty() ? "" : ", ") + divergence;
  return fmt::format("{} at {}", ending.empty() ? " ends" : fmt::format(": {},", ending),
                     divergence.empty()
                         ? fmt::format("a test loss of {}", with_interval(group.estimate("final_loss"), 1, 5))
                         : "no finite test loss");
}

std::string headline(const Comparison& comparison) {
  const SeedGroup& first = comparison.groups().front();
  const int steps = comparison.setup().steps();
  std::string text = fmt::format("{} under {}{}", comparison.model(), name_of(first), end_of(first, steps));
  if (comparison.is_classifier())
    text += fmt::format(" and {} % test accuracy", percent_with_interval(first.values("final_accuracy"), 2));
  text += '.';
  for (const SeedGroup& group : comparison.groups()) {
    if (&group != &first && group.aborted_runs() > 0)
      text += fmt::format(" Under {}: {}.", name_of(group), group.ending(steps));
  }
  if (const sim::TextDataset* data = comparison.text()) {
    text += fmt::format(
        " Losses are in nats per character; without looking at the context none below {:.4f} is possible "
        "(unigram entropy)",
        data->unigram_entropy());
    text += data->entropy_rate() ? fmt::format(", and at all none below {:.4f} (entropy rate of the source).",
                                               *data->entropy_rate())
                                 : std::string(".");
  }
  return text;
}

/// Runs that went on with other ranks than they began with, and are those of no number of ranks.
std::vector<std::string> changes_of_ranks(const Comparison& comparison) {
  std::vector<std::string> sentences;
  for (const SeedGroup& group : comparison.groups()) {
    for (std::size_t i = 0; i < group.results.size(); ++i) {
      if (const std::string& ranks = group.results[i].former_ranks; !ranks.empty())
        sentences.push_back(
            fmt::format("{}, seed {}, ran {}: its bits are those of no number of ranks alone.",
                        name_of(group), comparison.first_seed() + i, ranks));
    }
  }
  return sentences;
}

/// What the runs of all groups skipped, and what their scalers asked for.
std::vector<std::string> costs(const Comparison& comparison) {
  std::vector<TalliedRun> tallied;
  std::vector<TwinRequests> requests;
  for (const SeedGroup& group : comparison.groups()) {
    for (std::size_t i = 0; i < group.results.size(); ++i) {
      const CellResult& result = group.results[i];
      tallied.push_back(
          {.strategy = name_of(group), .seed = comparison.first_seed() + i, .skips = result.skips});
      requests.push_back({.strategy = name_of(group),
                          .twins = result.value("scaler_twins"),
                          .steps = result.value("steps")});
    }
  }
  return {skips_paragraph(tallied), scaler_twins_sentence(requests)};
}

}  // namespace

std::vector<double> SeedGroup::values(std::string_view key) const {
  std::vector<double> values;
  for (const CellResult& result : results) values.push_back(result.value(key));
  return values;
}

std::size_t SeedGroup::diverged_runs() const {
  const auto diverged = [](const CellResult& result) { return !std::isfinite(result.value("final_loss")); };
  return static_cast<std::size_t>(std::ranges::count_if(results, diverged));
}

std::string SeedGroup::divergence() const {
  const std::size_t diverged = diverged_runs();
  if (diverged == 0) return {};
  return diverged == results.size() ? "diverged" : fmt::format("{} of {} diverged", diverged, results.size());
}

std::size_t SeedGroup::aborted_runs() const {
  const auto aborted = [](const CellResult& result) { return !result.abort_reason.empty(); };
  return static_cast<std::size_t>(std::ranges::count_if(results, aborted));
}

std::string SeedGroup::ending(int steps) const {
  std::vector<double> ended_at;
  for (const CellResult& result : results) {
    if (!result.abort_reason.empty()) ended_at.push_back(result.value("steps"));
  }
  if (ended_at.empty()) return {};
  if (results.size() == 1) return fmt::format("ended by its scaler at step {} of {}", ended_at[0], steps);
  return fmt::format("{} of {} runs ended by their scaler at step{} {} of {}", ended_at.size(),
                     results.size(), ended_at.size() == 1 ? "" : "s", fmt::join(ended_at, ", "), steps);
}

Comparison::Comparison(std::string model, const TrainingSetup& setup, std::span<const Cell> cells,
                       RunChoice common)
    : model_(std::move(model)), setup_(&setup), common_(std::move(common)), first_seed_(cells.front().seed) {
  for (const Cell& cell : cells) {
    if (cell.model != model_) continue;
    if (cell.seed == first_seed_) groups_.push_back({.policy = cell.policy, .scaler = cell.scaler});
    groups_.back().results.push_back(read_cell(cell.directory));
  }
  put_in_order();
}

void Comparison::put_in_order() {
  auto reference = std::ranges::find(groups_, "fp32 none", &SeedGroup::strategy);
  if (reference == groups_.end()) reference = std::ranges::find(groups_, "fp32", &SeedGroup::policy);
  has_reference_ = reference != groups_.end();
  if (has_reference_) std::rotate(groups_.begin(), reference, reference + 1);
  std::ranges::stable_sort(groups_.begin() + has_reference_, groups_.end(), {}, rank_of);
}

std::optional<Estimate> Comparison::difference(const SeedGroup& group, std::string_view key) const {
  if (!has_reference_ || is_reference(group)) return std::nullopt;
  return estimate_difference(groups_.front().values(key), group.values(key));
}

std::string Comparison::setting() const {
  std::string text = fmt::format("{}; {}, seed{} {}", description(), counted(setup_->steps(), "step"),
                                 seeds() == 1 ? "" : "s", first_seed_);
  text += seeds() == 1
              ? "."
              : fmt::format(" to {}. ± and [ ]: 95 % t-intervals over the seeds.", first_seed_ + seeds() - 1);
  if (has_reference_ && groups_.size() > 1 && rounds_in_all_reduce(common_.parallel))
    text += " The runs of fp32 were all-reduced in FP32.";
  return text;
}

void write_verdict(RunRecord& record, const Comparison& comparison) {
  if (const std::string text = answer(comparison); !text.empty()) record.verdict(text);
  record.verdict(headline(comparison));
  for (const std::string& text : costs(comparison)) {
    if (!text.empty()) record.verdict(text);
  }
  record.verdict(verdict_table(comparison).text());
  for (const SeedGroup& group : comparison.groups()) {
    for (std::size_t i = 0; i < group.results.size(); ++i) {
      const CellResult& result = group.results[i];
      if (result.abort_reason.empty()) continue;
      record.verdict(abort_sentence(name_of(group), comparison.first_seed() + i,
                                    static_cast<std::size_t>(result.value("steps")), result.abort_reason));
    }
  }
  for (const std::string& sentence : changes_of_ranks(comparison)) record.verdict(sentence);
  record.verdict(comparison.setting());
}

}  // namespace experiments
