#include "experiments/training/cell_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "experiments/training/step_tables.h"
#include "sim/tensor/log2.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

/// The log2 scales of the losses after the first: "8 16".
std::string further_scales_of(const sim::StepRecord& step) {
  std::vector<double> log2_scales;
  for (const float scale : step.further_scales) log2_scales.push_back(sim::log2_of(scale));
  return fmt::format("{}", fmt::join(log2_scales, " "));
}

/// A CSV line of numbers and names, which need no quotes.
std::string line_of(const std::vector<Value>& cells) {
  std::vector<std::string> texts;
  for (const Value& cell : cells) texts.push_back(cell.text());
  return fmt::format("{}\n", fmt::join(texts, ","));
}

std::string line_of(const std::vector<std::string>& header) {
  return fmt::format("{}\n", fmt::join(header, ","));
}

struct CellStep {
  const Cell& cell;
  const sim::StepRecord& step;
  const sim::Clipping& clipping;
  sim::TwinComparison twin = sim::total_of(step.twin);
};

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

template <class Quantity>
auto if_clipped(Quantity quantity) {
  return [quantity](const CellStep& r) -> double {
    const bool clipped = r.clipping.max_norm.has_value() && !r.step.skipped();
    return clipped ? r.step.clipping.norm.*quantity : undefined;
  };
}

template <class Quantity>
auto if_measured(Quantity quantity) {
  return [quantity](const CellStep& r) { return r.step.twin.empty() ? undefined : (r.twin.*quantity)(); };
}

/// Empty of a step with an update.
template <class Quantity>
auto if_skipped(Quantity quantity) {
  return [quantity](const CellStep& r) { return r.step.skip ? Value(quantity(*r.step.skip)) : Value(""); };
}

const TableOf<CellStep> cell_steps_table{
    .name = "steps",
    .rows = "each step",
    .columns = columns_of_cell<CellStep>(
        {{"step", "steps", [](auto& r) { return r.step.step; }},
         {"loss", "1", [](auto& r) { return r.step.loss; }},
         {"scale_log2", "log2", [](auto& r) { return sim::log2_of(r.step.scale); }},
         {"further_scales_log2", "log2", [](auto& r) { return further_scales_of(r.step); }},
         {"decision", "", [](auto& r) { return sim::name_of(r.step.decision); }},
         {"learning_rate", "1", [](auto& r) { return r.step.learning_rate; }},
         {"gradient_norm", "1", if_clipped(&sim::NormClipping::norm)},
         {"clip_coefficient", "1", if_clipped(&sim::NormClipping::coefficient)},
         {"clipped_values", "values", [](auto& r) { return r.step.clipping.clipped_values; }},
         {"fraction_swallowed", "1", [](auto& r) { return fraction_swallowed(r.step.updates); }},
         {"fraction_flushed", "1", if_measured(&sim::TwinComparison::fraction_flushed)},
         {"norm_share_flushed", "1", if_measured(&sim::TwinComparison::norm_share_flushed)},
         {"fraction_overflow", "1", if_measured(&sim::TwinComparison::fraction_overflow)},
         {"relative_error", "1", if_measured(&sim::TwinComparison::relative_error)},
         {"cosine", "1", if_measured(&sim::TwinComparison::cosine)},
         {"skip_place", "", if_skipped([](const sim::SkipRecord& skip) { return sim::name_of(skip.place); })},
         {"skip_operation", "", if_skipped([](const sim::SkipRecord& skip) { return skip.operation; })},
         {"skip_layer", "", if_skipped([](const sim::SkipRecord& skip) { return skip.layer; })},
         {"skip_consumer", "", if_skipped([](const sim::SkipRecord& skip) { return skip.consumer; })},
         {"skip_element", "", if_skipped([](const sim::SkipRecord& skip) { return skip.element; })},
         {"skip_value", "1", if_skipped([](const sim::SkipRecord& skip) { return skip.value; })},
         {"skip_twin_exponent", "log2", if_skipped([](const sim::SkipRecord& skip) {
            return skip.has_twin_value() ? Value(skip.twin_exponent()) : Value("");
          })},
         {"skip_twin_finite", "0 or 1",
          if_skipped([](const sim::SkipRecord& skip) { return int{skip.twin_finite}; })}})};

const TableOf<CellStep> cell_skips_table{
    .name = "skips",
    .rows = "each step without an update",
    .columns = columns_of_cell(columns_of_part<CellStep, sim::StepRecord>(
        skip_columns(), [](const CellStep& r) -> const sim::StepRecord& { return r.step; }))};

struct CellParameter {
  const Cell& cell;
  std::string name;
  sim::UpdateCounts counts;
};

const TableOf<CellParameter> cell_parameters_table{
    .name = "parameters",
    .rows = "each parameter",
    .columns = columns_of_cell<CellParameter>(
        {{"parameter", "", &CellParameter::name},
         {"updates", "updates", [](auto& r) { return r.counts.updates; }},
         {"swallowed", "updates", [](auto& r) { return r.counts.swallowed; }}})};

constexpr const char* steps_file = "steps.partial.csv";
constexpr const char* skips_file = "skips.partial.csv";

std::unique_ptr<GrowingFile> begin_or_go_on(const fs::path& file, const std::vector<FileMark>& marks,
                                            const TableOf<CellStep>& table) {
  const auto mark = std::ranges::find(marks, file.filename().string(), &FileMark::name);
  if (mark != marks.end()) return std::make_unique<GrowingFile>(file, *mark);
  auto begun = std::make_unique<GrowingFile>(file);
  begun->append(line_of(table.header()));
  return begun;
}

}  // namespace

Outputs cell_outputs() {
  return outputs_of(cell_steps_table, cell_skips_table, cell_parameters_table);
}

Journal::Journal(const Cell& cell, const std::vector<FileMark>& marks)
    : cell_(cell),
      steps_(begin_or_go_on(cell.directory / steps_file, marks, cell_steps_table)),
      skips_(begin_or_go_on(cell.directory / skips_file, marks, cell_skips_table)) {}

void Journal::add(const sim::StepRecord& step, const sim::Clipping& clipping) {
  const CellStep row{cell_, step, clipping};
  steps_->append(line_of(cell_steps_table.cells(row)));
  if (step.skip) skips_->append(line_of(cell_skips_table.cells(row)));
}

std::vector<FileMark> Journal::marks() {
  return {steps_->mark(), skips_->mark()};
}

void Journal::copy_to(const fs::path& directory) {
  steps_->copy_to(directory / "steps.csv");
  skips_->copy_to(directory / "skips.csv");
}

void Journal::remove(const fs::path& directory) {
  fs::remove(directory / steps_file);
  fs::remove(directory / skips_file);
}

void write_parameters(RunRecord& record, const Cell& cell, std::span<const sim::ParameterSpec> parameters,
                      std::span<const sim::UpdateCounts> counts) {
  const auto add = cell_parameters_table.start(record);
  for (std::size_t i = 0; i < counts.size(); ++i) add({cell, parameters[i].name, counts[i]});
}

}  // namespace experiments
