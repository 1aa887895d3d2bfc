#include "experiments/training/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "experiments/frame/files.h"
#include "experiments/frame/text_table.h"
#include "experiments/training/glossary.h"
#include "experiments/training/instruments.h"

namespace experiments {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// Losses to be sorted: a mean that is not finite comes last.
double rank_of(const SeedGroup& group) {
  const double loss = group.estimate("final_loss").mean;
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

/// The rows of all cells' tables of that name; of a single cell its own file, which lies on the disk once where the
/// file system can give it a second name.
void merge(const std::filesystem::path& file, std::span<const Cell> cells) {
  const std::filesystem::path first = cells.front().directory / file.filename();
  if (cells.size() == 1) {
    std::error_code problem;
    std::filesystem::create_hard_link(first, file, problem);
    if (problem) std::filesystem::copy_file(first, file, problem);
    if (problem) throw_not_written(file, problem.value());
    return;
  }
  std::string merged;
  for (const Cell& cell : cells) {
    std::ifstream table(cell.directory / file.filename(), std::ios::binary);
    std::string line;
    std::getline(table, line);
    if (&cell == &cells.front()) merged += line + '\n';
    while (std::getline(table, line)) merged += line + '\n';
  }
  write_contents(file, merged);
}

const sim::TextDataset* text_of(const Comparison& comparison) {
  return dynamic_cast<const sim::TextDataset*>(&comparison.setup().dataset());
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
    if (is_classifier) row.push_back(with_interval(group.estimate("final_accuracy"), 100, 2));
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

/// Groups by what their intervals of the difference to FP32 tell.
struct Judgements {
  std::vector<std::string> different;
  std::size_t open = 0;               ///< zero lies in the interval
  std::vector<std::string> unjudged;  ///< with the reason

  std::size_t judged() const { return different.size() + open; }
};

bool is_whole(const SeedGroup& group) {
  return group.aborted_runs() == 0 && group.diverged_runs() == 0;
}

Judgements judgements_of(const Comparison& comparison) {
  Judgements judgements;
  for (const SeedGroup& group : comparison.groups()) {
    const std::optional<Estimate> difference = comparison.difference(group, comparison.quality());
    if (!difference) continue;
    if (!is_whole(group) || !is_whole(comparison.groups().front())) {
      judgements.unjudged.push_back(name_of(group) + ", where runs were ended or diverged");
    } else if (!difference->is_judged()) {
      judgements.unjudged.push_back(name_of(group) + ", the same in every pair");
    } else if (difference->excludes_zero()) {
      judgements.different.push_back(name_of(group));
    } else {
      ++judgements.open;
    }
  }
  return judgements;
}

/// Which differences to FP32 are more than chance.
std::string significance(const Comparison& comparison) {
  if (!comparison.has_reference() || comparison.groups().size() == 1) return "";
  if (comparison.seeds() < Estimate::enough_values)
    return fmt::format("Whether anything differs from fp32 is judged from {} seeds on.",
                       Estimate::enough_values);
  const Judgements judgements = judgements_of(comparison);
  std::string text;
  if (judgements.judged() > 0) {
    text = fmt::format("By the 95 % t-interval of the difference in test {}, paired over {} seeds, ",
                       comparison.is_classifier() ? "accuracy" : "loss", comparison.seeds());
    if (judgements.different.empty()) {
      text += "nothing can be told from fp32.";
    } else {
      text += fmt::format("{} {} from fp32", fmt::join(judgements.different, ", "),
                          judgements.different.size() == 1 ? "differs" : "differ");
      text +=
          judgements.open == 0 ? "." : fmt::format("; of the other {} that cannot be said.", judgements.open);
    }
  }
  if (judgements.judged() > 1) {
    text += fmt::format(" Each of the {} comparisons is at 95 %, uncorrected for their number.",
                        judgements.judged());
  }
  if (!judgements.unjudged.empty()) {
    text += fmt::format("{}Not judged against fp32: {}.", text.empty() ? "" : " ",
                        fmt::join(judgements.unjudged, "; "));
  }
  return text;
}

std::string headline(const Comparison& comparison) {
  const SeedGroup& first = comparison.groups().front();
  const int steps = comparison.setup().steps();
  const std::string ending = first.ending(steps);
  std::string text = fmt::format("{} under {}{} at a test loss of {}", comparison.model(), name_of(first),
                                 ending.empty() ? " ends" : fmt::format(": {},", ending),
                                 with_interval(first.estimate("final_loss"), 1, 5));
  if (comparison.is_classifier())
    text += fmt::format(" and {} % test accuracy", with_interval(first.estimate("final_accuracy"), 100, 2));
  text += '.';
  for (const SeedGroup& group : comparison.groups()) {
    if (&group != &first && group.aborted_runs() > 0)
      text += fmt::format(" Under {}: {}.", name_of(group), group.ending(steps));
  }
  if (const sim::TextDataset* data = text_of(comparison)) {
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

/// What a cell comes to, in the order of its summary.
std::vector<std::string> cell_results() {
  return joined<std::string>(
      {"final_loss", "final_accuracy", "steps", "skipped_steps", "skipped_for_scale", "skipped_at_any_scale",
       "skipped_by_rule", "final_scale_log2", "fraction_swallowed", "scaler_twins", "mean_fraction_flushed",
       "mean_norm_share_flushed", "mean_relative_error"},
      peak_keys());
}

struct CellRow {
  const Cell& cell;
  const CellResult& result;
};

TableOf<CellRow> cells_table(const std::vector<std::string>& keys) {
  std::vector<Column<CellRow>> results;
  for (const std::string& key : keys) {
    results.push_back(
        {key, result_key(key).unit,
         [key](const CellRow& r) { return r.result.has(key) ? r.result.value(key) : undefined; },
         result_key(key).when});
  }
  results.push_back({"abort_reason", "", [](const CellRow& r) { return r.result.abort_reason; }});
  return {.name = "cells", .rows = "each run", .columns = columns_of_cell(results)};
}

/// One result of a group.
struct ComparisonRow {
  const Comparison& comparison;
  const SeedGroup& group;
  std::size_t rank;
  std::string key;
  Estimate own = group.estimate(key);
  Estimate difference =
      comparison.difference(group, key)
          .value_or(Estimate{.mean = undefined, .deviation = undefined, .half_width = undefined});
};

const TableOf<ComparisonRow> comparison_table{
    .name = "comparison",
    .rows = "each result of each policy and scaler",
    .columns = {
        {"model", "", [](const ComparisonRow& r) { return r.comparison.model(); }},
        {"policy", "", [](const ComparisonRow& r) { return r.group.policy; }},
        {"scaler", "", [](const ComparisonRow& r) { return r.group.scaler; }},
        {"rank", "1", &ComparisonRow::rank},
        {"quantity", "", &ComparisonRow::key},
        {"seeds", "seeds", [](const ComparisonRow& r) { return r.own.count; }},
        {"mean", "the quantity's", [](const ComparisonRow& r) { return r.own.mean; }},
        {"std", "the quantity's", [](const ComparisonRow& r) { return r.own.deviation; }},
        {"interval_lower", "the quantity's", [](const ComparisonRow& r) { return r.own.lower(); }},
        {"interval_upper", "the quantity's", [](const ComparisonRow& r) { return r.own.upper(); }},
        {"difference", "the quantity's", [](const ComparisonRow& r) { return r.difference.mean; }},
        {"difference_std", "the quantity's", [](const ComparisonRow& r) { return r.difference.deviation; }},
        {"difference_lower", "the quantity's", [](const ComparisonRow& r) { return r.difference.lower(); }},
        {"difference_upper", "the quantity's", [](const ComparisonRow& r) { return r.difference.upper(); }}}};

struct GroupRow {
  const Comparison& comparison;
  const SeedGroup& group;
};

/// Loss and accuracy, and their difference to FP32.
SummaryOf<GroupRow> quality_summary(const std::string& prefix) {
  SummaryOf<GroupRow> summary;
  for (const char* key : {"final_loss", "final_accuracy"}) {
    const ResultKey& known = result_key(key);
    const auto has = [key](const GroupRow& r) { return r.group.results.front().has(key); };
    summary.rows.push_back({prefix + key, known.meaning,
                            [key, has](const GroupRow& r) {
                              return has(r) ? std::optional(r.group.estimate(key)) : std::nullopt;
                            },
                            known.when});
    summary.rows.push_back({fmt::format("{}{}_difference", prefix, key),
                            "to fp32, mean of the pairs of a seed",
                            [key, has](const GroupRow& r) {
                              return has(r) ? r.comparison.difference(r.group, key) : std::nullopt;
                            },
                            "--sweep with fp32"});
  }
  return summary;
}

/// The other results, as means.
SummaryOf<SeedGroup> means_summary(const std::string& prefix) {
  SummaryOf<SeedGroup> summary;
  for (const std::string& key : cell_results()) {
    if (key == "final_loss" || key == "final_accuracy") continue;
    const ResultKey& known = result_key(key);
    summary.rows.push_back({prefix + key, known.meaning,
                            [key](const SeedGroup& g) {
                              return g.results.front().has(key) ? std::optional(g.estimate(key).mean)
                                                                : std::nullopt;
                            },
                            known.when});
  }
  summary.rows = joined(std::move(summary.rows), failure_rows(prefix));
  return summary;
}

SummaryOf<sim::TextDataset> text_summary(const std::string& prefix) {
  return {{{prefix + "unigram_entropy", "of the test text, nats: the least loss without context",
            &sim::TextDataset::unigram_entropy, "text"},
           {prefix + "entropy_rate", "of the source of the text, nats", &sim::TextDataset::entropy_rate,
            "text of a known source"}}};
}

}  // namespace

std::vector<SummaryRow<SeedGroup>> result_rows(const std::string& prefix,
                                               const std::vector<std::string>& names) {
  std::vector<SummaryRow<SeedGroup>> rows;
  for (const std::string& name : names) {
    const ResultKey& known = result_key(name);
    rows.push_back({prefix + name, known.meaning,
                    [name](const SeedGroup& g) {
                      return g.results.front().has(name) ? std::optional(g.estimate(name)) : std::nullopt;
                    },
                    known.when});
  }
  return rows;
}

std::vector<SummaryRow<SeedGroup>> failure_rows(const std::string& prefix) {
  return {{prefix + "diverged_runs", "runs whose final loss is not finite", &SeedGroup::diverged_runs},
          {prefix + "aborted_runs", "runs that their scaler ended", &SeedGroup::aborted_runs}};
}

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
  std::string text = fmt::format("{}; {} steps, seed{} {}", description(), setup_->steps(),
                                 seeds() == 1 ? "" : "s", first_seed_);
  if (seeds() == 1) return text + ".";
  return text + fmt::format(" to {}. ± and [ ]: 95 % t-intervals over the seeds.", first_seed_ + seeds() - 1);
}

void write_cells(RunRecord& record, std::span<const Cell> cells) {
  for (const char* table : cell_tables) merge(record.staging() / table, cells);
  std::vector<CellResult> results;
  std::vector<std::string> keys;
  for (const Cell& cell : cells) {
    results.push_back(read_cell(cell.directory));
    for (const auto& [key, value] : results.back().values) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  const TableOf<CellRow> table = cells_table(keys);
  const auto add = table.start(record);
  for (std::size_t i = 0; i < cells.size(); ++i) add({cells[i], results[i]});
}

void write_comparisons(RunRecord& record, std::span<const Comparison> comparisons) {
  const auto add = comparison_table.start(record);
  for (const Comparison& comparison : comparisons) {
    for (std::size_t i = 0; i < comparison.groups().size(); ++i) {
      const SeedGroup& group = comparison.groups()[i];
      for (const auto& [key, value] : group.results.front().values) add({comparison, group, i + 1, key});
    }
  }
}

void write_summary(RunRecord& record, std::span<const Comparison> comparisons, bool single_run) {
  for (const Comparison& comparison : comparisons) {
    const std::string of_network = single_run ? "" : comparison.model() + ".";
    for (const SeedGroup& group : comparison.groups()) {
      const std::string prefix =
          single_run ? "" : fmt::format("{}{}.{}.", of_network, group.policy, group.scaler);
      quality_summary(prefix).write(record, {comparison, group});
      means_summary(prefix).write(record, group);
    }
    if (const sim::TextDataset* text = text_of(comparison)) text_summary(of_network).write(record, *text);
  }
}

Outputs comparison_outputs() {
  const std::vector<SummaryKey> of_sweeps{
      {"<model>.<policy>.<scaler>.<key>", "each of these in a sweep, as a mean over the seeds", "--sweep"},
      {"<model>.unigram_entropy, <model>.entropy_rate", "of its text, in a sweep", "--sweep"}};
  return outputs_of(cell_outputs(), cells_table(cell_results()), comparison_table, quality_summary(""),
                    means_summary(""), text_summary(""), of_sweeps);
}

void write_verdict(RunRecord& record, const Comparison& comparison) {
  record.verdict(headline(comparison));
  if (const std::string text = significance(comparison); !text.empty()) record.verdict(text);
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
  record.verdict(comparison.setting());
}

}  // namespace experiments
