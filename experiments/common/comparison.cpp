#include "experiments/common/comparison.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "experiments/common/instruments.h"
#include "experiments/common/text_table.h"

namespace experiments {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// Losses to be sorted: a mean that is not finite comes last.
double rank_of(const SeedGroup& group) {
  const double loss = group.estimate("final_loss").mean;
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

/// All steps of all cells, each with the cell it belongs to.
void write_steps(const std::filesystem::path& file, std::span<const Cell> cells) {
  std::ofstream merged(file, std::ios::binary);
  fmt::print(merged, "model,policy,scaler,seed,{}\n", fmt::join(step_columns(), ","));
  for (const Cell& cell : cells) {
    std::ifstream steps(cell.directory / "steps.csv", std::ios::binary);
    std::string line;
    std::getline(steps, line);
    while (std::getline(steps, line))
      fmt::print(merged, "{},{},{},{},{}\n", cell.model, cell.policy, cell.scaler, cell.seed, line);
  }
  if (!merged.flush()) throw std::runtime_error(fmt::format("file '{}' cannot be written", file.string()));
}

const sim::TextDataset* text_of(const Comparison& comparison) {
  return dynamic_cast<const sim::TextDataset*>(&comparison.setup().dataset());
}

/// "+0.12 [-0.30, 0.54]".
std::string difference_text(const std::optional<Estimate>& difference, double factor, int decimals) {
  if (!difference || !std::isfinite(difference->mean)) return "-";
  std::string text = fmt::format("{:+.{}f}", factor * difference->mean, decimals);
  if (std::isfinite(difference->half_width))
    text += fmt::format(" [{1:.{0}f}, {2:.{0}f}]", decimals, factor * difference->lower(),
                        factor * difference->upper());
  return text;
}

TextTable verdict_table(const Comparison& comparison) {
  const bool is_classifier = comparison.is_classifier();
  TextTable table{.columns = {"policy", "scaler", "final loss"}, .rows = {}};
  if (is_classifier) table.columns.push_back("accuracy, %");
  if (comparison.has_reference())
    table.columns.push_back(is_classifier ? "against fp32, points" : "against fp32");
  table.columns.insert(table.columns.end(), {"skipped", "final S", "swallowed"});
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
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Which differences to FP32 are more than chance.
std::string significance(const Comparison& comparison) {
  std::vector<std::string> different;
  std::size_t others = 0;
  for (const SeedGroup& group : comparison.groups()) {
    const std::optional<Estimate> difference = comparison.difference(group, comparison.quality());
    if (!difference || !std::isfinite(difference->half_width)) continue;
    if (difference->lower() <= 0 && difference->upper() >= 0) {
      ++others;
    } else {
      different.push_back(fmt::format("{} with {}", group.policy, group.scaler));
    }
  }
  if (different.empty() && others == 0) return "";
  std::string text =
      fmt::format("By the 95 % t-interval of the difference in test {}, paired over {} seeds, ",
                  comparison.is_classifier() ? "accuracy" : "loss", comparison.seeds());
  if (different.empty()) return text + "nothing can be told from fp32.";
  text += fmt::format("{} {} from fp32", fmt::join(different, ", "),
                      different.size() == 1 ? "differs" : "differ");
  return text + (others == 0 ? "." : fmt::format("; of the other {} that cannot be said.", others));
}

std::string headline(const Comparison& comparison) {
  const SeedGroup& first = comparison.groups().front();
  std::string text =
      fmt::format("{} under {} with {} ends at a test loss of {}", comparison.model(), first.policy,
                  first.scaler, with_interval(first.estimate("final_loss"), 1, 5));
  if (comparison.is_classifier())
    text += fmt::format(" and {} % test accuracy", with_interval(first.estimate("final_accuracy"), 100, 2));
  text += '.';
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

Comparison::Comparison(std::string model, const TrainingSetup& setup, std::span<const Cell> cells)
    : model_(std::move(model)), setup_(&setup), first_seed_(cells.front().seed) {
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
  std::string text = fmt::format("{}; {} steps, seed{} {}", setup_->description(), setup_->steps(),
                                 seeds() == 1 ? "" : "s", first_seed_);
  if (seeds() == 1) return text + ".";
  return text + fmt::format(" to {}. ± and [ ]: 95 % t-intervals over the seeds.", first_seed_ + seeds() - 1);
}

void write_cells(sim::RunRecord& record, std::span<const Cell> cells) {
  write_steps(record.staging() / "steps.csv", cells);
  std::vector<CellResult> results;
  std::vector<std::string> keys;
  for (const Cell& cell : cells) {
    results.push_back(read_cell(cell.directory));
    for (const auto& [key, value] : results.back().values) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  std::vector<std::string> columns{"model", "policy", "scaler", "seed"};
  columns.insert(columns.end(), keys.begin(), keys.end());
  columns.push_back("abort_reason");
  sim::Table& table = record.table("cells", columns);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::vector<sim::Value> row{cells[i].model, cells[i].policy, cells[i].scaler, cells[i].seed};
    for (const std::string& key : keys)
      row.push_back(results[i].has(key) ? results[i].value(key) : undefined);
    row.emplace_back(results[i].abort_reason);
    table.row(row);
  }
}

void write_comparisons(sim::RunRecord& record, std::span<const Comparison> comparisons) {
  sim::Table& table =
      record.table("comparison", {"model", "policy", "scaler", "rank", "quantity", "seeds", "mean", "std",
                                  "interval_lower", "interval_upper", "difference", "difference_std",
                                  "difference_lower", "difference_upper"});
  const Estimate none{.count = 0, .mean = undefined, .deviation = undefined, .half_width = undefined};
  for (const Comparison& comparison : comparisons) {
    for (std::size_t i = 0; i < comparison.groups().size(); ++i) {
      const SeedGroup& group = comparison.groups()[i];
      for (const auto& [key, value] : group.results.front().values) {
        const Estimate own = group.estimate(key),
                       difference = comparison.difference(group, key).value_or(none);
        table.row({comparison.model(), group.policy, group.scaler, i + 1, key, own.count, own.mean,
                   own.deviation, own.lower(), own.upper(), difference.mean, difference.deviation,
                   difference.lower(), difference.upper()});
      }
    }
  }
}

void write_summary(sim::RunRecord& record, std::span<const Comparison> comparisons, bool single_run) {
  for (const Comparison& comparison : comparisons) {
    const std::string of_network = single_run ? "" : comparison.model() + ".";
    for (const SeedGroup& group : comparison.groups()) {
      const std::string prefix =
          single_run ? "" : fmt::format("{}{}.{}.", of_network, group.policy, group.scaler);
      for (const auto& [key, value] : group.results.front().values) {
        if (key != "final_loss" && key != "final_accuracy") {
          record.summary(prefix + key, group.estimate(key).mean);
          continue;
        }
        write_estimate(record, prefix + key, group.estimate(key));
        if (const auto difference = comparison.difference(group, key))
          write_estimate(record, prefix + key + "_difference", *difference);
      }
      record.summary(prefix + "diverged_runs", group.diverged_runs());
      record.summary(prefix + "aborted_runs", group.aborted_runs());
    }
    if (const sim::TextDataset* text = text_of(comparison)) {
      record.summary(of_network + "unigram_entropy", text->unigram_entropy());
      if (text->entropy_rate()) record.summary(of_network + "entropy_rate", *text->entropy_rate());
    }
  }
}

void write_verdict(sim::RunRecord& record, const Comparison& comparison) {
  record.verdict(headline(comparison));
  if (const std::string text = significance(comparison); !text.empty()) record.verdict(text);
  record.verdict(verdict_table(comparison).text());
  for (const SeedGroup& group : comparison.groups()) {
    for (std::size_t i = 0; i < group.results.size(); ++i) {
      const CellResult& result = group.results[i];
      if (result.abort_reason.empty()) continue;
      record.verdict(abort_sentence(fmt::format("{} with {}", group.policy, group.scaler),
                                    comparison.first_seed() + i,
                                    static_cast<std::size_t>(result.value("steps")), result.abort_reason));
    }
  }
  record.verdict(comparison.setting());
}

}  // namespace experiments
