#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <system_error>

#include "experiments/frame/files.h"
#include "experiments/frame/growing_file.h"
#include "experiments/training/cell_tables.h"
#include "experiments/training/comparison.h"
#include "experiments/training/instruments.h"

namespace experiments {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

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
  GrowingFile merged(file);
  for (const Cell& cell : cells) {
    const std::string table = read_file(cell.directory / file.filename());
    merged.append(std::string_view(table).substr(&cell == &cells.front() ? 0 : table.find('\n') + 1));
  }
  merged.mark();
}

/// What a cell comes to, in the order of its summary.
std::vector<std::string> cell_results() {
  return joined<std::string>(
      {"final_loss", "final_accuracy", "steps", "skipped_steps", "skipped_for_scale", "skipped_at_any_scale",
       "skipped_by_rule", "skipped_after_overflow", "final_scale_log2", "fraction_swallowed", "scaler_twins",
       "mean_fraction_flushed", "mean_norm_share_flushed", "mean_relative_error"},
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
  results.push_back({"abort_reason", "", [](auto& r) { return r.result.abort_reason; }});
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
    .columns = {{"model", "", [](auto& r) { return r.comparison.model(); }},
                {"policy", "", [](auto& r) { return r.group.policy; }},
                {"scaler", "", [](auto& r) { return r.group.scaler; }},
                {"rank", "1", &ComparisonRow::rank},
                {"quantity", "", &ComparisonRow::key},
                {"seeds", "seeds", [](auto& r) { return r.own.count; }},
                {"mean", "the quantity's", [](auto& r) { return r.own.mean; }},
                {"std", "the quantity's", [](auto& r) { return r.own.deviation; }},
                {"interval_lower", "the quantity's", [](auto& r) { return r.own.lower(); }},
                {"interval_upper", "the quantity's", [](auto& r) { return r.own.upper(); }},
                {"difference", "the quantity's", [](auto& r) { return r.difference.mean; }},
                {"difference_std", "the quantity's", [](auto& r) { return r.difference.deviation; }},
                {"difference_lower", "the quantity's", [](auto& r) { return r.difference.lower(); }},
                {"difference_upper", "the quantity's", [](auto& r) { return r.difference.upper(); }}}};

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
    if (const sim::TextDataset* text = comparison.text()) text_summary(of_network).write(record, *text);
  }
}

Outputs comparison_outputs() {
  const std::vector<SummaryKey> of_sweeps{
      {"<model>.<policy>.<scaler>.<key>", "each of these in a sweep, as a mean over the seeds", "--sweep"},
      {"<model>.unigram_entropy, <model>.entropy_rate", "of its text, in a sweep", "--sweep"}};
  return outputs_of(cell_outputs(), cells_table(cell_results()), comparison_table, quality_summary(""),
                    means_summary(""), text_summary(""), of_sweeps);
}

}  // namespace experiments
