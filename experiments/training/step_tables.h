#pragma once
/// Tables of what the instruments of training runs saw, step by step.

#include <span>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/training/instruments.h"

namespace experiments {

/// A step of one run.
struct StepOfRun {
  const InstrumentedRun& run;
  const sim::StepRecord& step;
  sim::TwinComparison twin = sim::total_of(step.twin);
};
/// A tensor of a step: one of the sites of its twin or of its statistics.
struct SiteOfStep {
  const InstrumentedRun& run;
  const sim::StepRecord& step;
  std::size_t site;
  int exponent = 0;  ///< of an octave of its statistics
};
struct ParameterOfRun {
  const InstrumentedRun& run;
  const sim::ParameterSpec& parameter;
  const sim::UpdateCounts& counts;
};

/// steps.csv: a row for each step; what it lost against its twin is NaN where it was not measured.
extern const TableOf<StepOfRun> steps_table;
/// layers.csv: a row for each tensor of each measured step.
extern const TableOf<SiteOfStep> layers_table;
/// skips.csv: a row for each step without an update that was recorded, with the first tensor of it that was
/// not finite. What the twin has there is empty unless that was a gradient.
extern const TableOf<StepOfRun> skips_table;
/// parameters.csv: a row for each parameter with its updates over the whole run, and how many of these rounding undid.
extern const TableOf<ParameterOfRun> parameters_table;
/// statistics.csv: a row for each tensor and step with statistics; exponents.csv: one for each octave of these that is
/// not empty.
extern const TableOf<SiteOfStep> statistics_table, exponents_table;

void write_steps(RunRecord& record, std::span<const InstrumentedRun> runs);
void write_layers(RunRecord& record, std::span<const InstrumentedRun> runs);
void write_skips(RunRecord& record, std::span<const InstrumentedRun> runs);
void write_parameters(RunRecord& record, std::span<const InstrumentedRun> runs);
void write_statistics(RunRecord& record, std::span<const InstrumentedRun> runs);

/// The columns of skips.csv after those that name the run, of a step with a record.
const std::vector<Column<sim::StepRecord>>& skip_columns();

}  // namespace experiments
