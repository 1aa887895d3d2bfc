#include "experiments/training/step_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "sim/tensor/log2.h"

namespace experiments {
namespace {

/// The columns that name the run, and more.
template <class Row>
std::vector<Column<Row>> columns_of_run(const std::vector<Column<Row>>& more) {
  return joined<Column<Row>>({{"strategy", "", [](auto& r) { return r.run.strategy; }},
                              {"seed", "", [](auto& r) { return r.run.seed; }}},
                             more);
}

template <class Quantity>
auto if_measured(Quantity quantity) {
  return [quantity](const StepOfRun& r) {
    return r.step.twin.empty() ? std::numeric_limits<double>::quiet_NaN() : (r.twin.*quantity)();
  };
}

const sim::TwinComparison& twin_of(const SiteOfStep& r) {
  return r.step.twin[r.site];
}
const sim::SiteStatistics& statistics_of(const SiteOfStep& r) {
  return r.step.statistics[r.site];
}

/// The columns that name the tensor, and more.
std::vector<Column<SiteOfStep>> columns_of_site(const std::vector<Column<SiteOfStep>>& more) {
  return joined(columns_of_run<SiteOfStep>(
                    {{"step", "steps", [](auto& r) { return r.step.step; }},
                     {"tensor", "", [](auto& r) { return r.run.sites[r.site].name; }},
                     {"kind", "", [](auto& r) { return sim::name_of(r.run.sites[r.site].kind); }}}),
                more);
}

/// A column of the skipped step's record; empty where it needs a twin's value and there is none.
template <class Quantity>
auto if_twin(Quantity quantity) {
  return [quantity](const sim::StepRecord& step) {
    return step.skip->has_twin_value() ? Value(std::invoke(quantity, *step.skip)) : Value("");
  };
}

using Twin = sim::TwinComparison;

}  // namespace

const std::vector<Column<sim::StepRecord>>& skip_columns() {
  using Step = sim::StepRecord;
  using Skip = sim::SkipRecord;
  static const std::vector<Column<Step>> columns{
      {"step", "steps", &Step::step},
      {"decision", "", [](auto& s) { return sim::name_of(s.decision); }},
      {"scale_log2", "log2", [](auto& s) { return sim::log2_of(s.skip->loss_scale); }},
      {"place", "", [](auto& s) { return sim::name_of(s.skip->place); }},
      {"operation", "", [](auto& s) { return s.skip->operation; }},
      {"layer", "", [](auto& s) { return s.skip->layer; }},
      {"consumer", "", [](auto& s) { return s.skip->consumer; }},
      {"element", "", [](auto& s) { return s.skip->element; }},
      {"index", "", [](auto& s) { return fmt::format("{}", fmt::join(s.skip->index, " ")); }},
      {"value", "1", [](auto& s) { return s.skip->value; }},
      {"tensor_scale_log2", "log2", [](auto& s) { return sim::log2_of(s.skip->tensor_scale); }},
      {"twin_value", "1", if_twin(&Skip::twin_value)},
      {"twin_exponent", "log2", if_twin(&Skip::twin_exponent)},
      {"scaled_twin_log2", "log2", if_twin(&Skip::log2_scaled)},
      {"twin_finite", "0 or 1", [](auto& s) { return int{s.skip->twin_finite}; }},
      {"scale_dependent", "0 or 1", [](auto& s) { return int{s.skip->is_scale_dependent()}; }}};
  return columns;
}

const TableOf<StepOfRun> steps_table{
    .name = "steps",
    .rows = "each step",
    .columns = columns_of_run<StepOfRun>(
        {{"step", "steps", [](auto& r) { return r.step.step; }},
         {"loss", "1", [](auto& r) { return r.step.loss; }},
         {"scale_log2", "log2", [](auto& r) { return sim::log2_of(r.step.scale); }},
         {"skipped", "0 or 1", [](auto& r) { return int{r.step.skipped()}; }},
         {"measured", "0 or 1", [](auto& r) { return int{!r.step.twin.empty()}; }},
         {"fraction_flushed", "1", if_measured(&Twin::fraction_flushed)},
         {"fraction_flushed_at_cast", "1", if_measured(&Twin::fraction_flushed_at_cast)},
         {"fraction_subnormal", "1", if_measured(&Twin::fraction_subnormal)},
         {"fraction_overflow", "1", if_measured(&Twin::fraction_overflow)},
         {"norm_share_flushed", "1", if_measured(&Twin::norm_share_flushed)},
         {"relative_error", "1", if_measured(&Twin::relative_error)},
         {"cosine", "1", if_measured(&Twin::cosine)},
         {"sign_agreement", "1", if_measured(&Twin::sign_agreement)}})};

const TableOf<SiteOfStep> layers_table{
    .name = "layers",
    .rows = "each tensor of each measured step",
    .columns = columns_of_site(columns_of_part<SiteOfStep, Twin>(
        {{"octaves_alive", "octaves", &Twin::octaves_alive},
         {"fraction_flushed", "1", &Twin::fraction_flushed},
         {"norm_share_flushed", "1", &Twin::norm_share_flushed},
         {"fraction_overflow", "1", &Twin::fraction_overflow},
         {"relative_error", "1", &Twin::relative_error},
         {"cosine", "1", &Twin::cosine},
         {"sign_agreement", "1", &Twin::sign_agreement},
         {"native_zero", "values", &Twin::native_zero},
         {"flushed_at_cast", "values", &Twin::flushed_at_cast},
         {"subnormal", "values", &Twin::subnormal},
         {"infinite", "values", &Twin::infinite},
         {"nan", "values", &Twin::nan},
         {"twin_norm", "1", &Twin::twin_norm},
         {"run_norm", "1", &Twin::run_norm},
         {"is_rounding_noise", "0 or 1", [](const Twin& twin) { return int{twin.is_rounding_noise}; }}},
        twin_of))};

const TableOf<StepOfRun> skips_table{
    .name = "skips",
    .rows = "each step without an update",
    .columns = columns_of_run(columns_of_part<StepOfRun, sim::StepRecord>(
        skip_columns(), [](const StepOfRun& r) -> const sim::StepRecord& { return r.step; }))};

const TableOf<ParameterOfRun> parameters_table{
    .name = "parameters",
    .rows = "each parameter",
    .columns = columns_of_run<ParameterOfRun>(
        {{"parameter", "", [](auto& r) { return r.parameter.name; }},
         {"updates", "updates", [](auto& r) { return r.counts.updates; }},
         {"swallowed", "updates", [](auto& r) { return r.counts.swallowed; }}})};

using Statistics = sim::SiteStatistics;

const TableOf<SiteOfStep> statistics_table{
    .name = "statistics",
    .rows = "each tensor of each step with statistics",
    .columns = columns_of_site(columns_of_part<SiteOfStep, Statistics>(
        {{"scale_log2", "log2", [](auto& s) { return sim::log2_of(s.scale); }},
         {"total", "values", &Statistics::total},
         {"zero", "values", &Statistics::zero},
         {"subnormal", "values", &Statistics::subnormal},
         {"infinite", "values", &Statistics::infinite},
         {"nan", "values", &Statistics::nan},
         {"rounded_inexact", "values", [](auto& s) { return s.rounding.inexact; }},
         {"rounded_to_subnormal", "values", [](auto& s) { return s.rounding.subnormal; }},
         {"rounded_to_zero", "values", [](auto& s) { return s.rounding.flushed; }},
         {"rounded_to_infinity", "values", [](auto& s) { return s.rounding.overflowed; }},
         {"norm", "1", &Statistics::norm},
         {"octaves_alive", "octaves", &Statistics::octaves_alive}},
        statistics_of)),
    .when = "--statistics-every"};

const TableOf<SiteOfStep> exponents_table{
    .name = "exponents",
    .rows = "each octave with values of each of these tensors",
    .columns = columns_of_site(
        {{"exponent", "log2", &SiteOfStep::exponent},
         {"count", "values", [](auto& r) { return statistics_of(r).exponents.octave(r.exponent).total; }}}),
    .when = "--statistics-every"};

void write_steps(RunRecord& record, std::span<const InstrumentedRun> runs) {
  const auto add = steps_table.start(record);
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) add({run, step});
  }
}

void write_layers(RunRecord& record, std::span<const InstrumentedRun> runs) {
  const auto add = layers_table.start(record);
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      for (std::size_t i = 0; i < step.twin.size(); ++i) add({run, step, i});
    }
  }
}

void write_skips(RunRecord& record, std::span<const InstrumentedRun> runs) {
  const auto add = skips_table.start(record);
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      if (step.skip) add({run, step});
    }
  }
}

void write_parameters(RunRecord& record, std::span<const InstrumentedRun> runs) {
  const auto add = parameters_table.start(record);
  for (const InstrumentedRun& run : runs) {
    std::vector<sim::UpdateCounts> sums(run.parameters.size());
    for (const sim::StepRecord& step : run.steps) add_updates(sums, step);
    for (std::size_t i = 0; i < sums.size(); ++i) add({run, run.parameters[i], sums[i]});
  }
}

void write_statistics(RunRecord& record, std::span<const InstrumentedRun> runs) {
  const auto add = statistics_table.start(record), add_octave = exponents_table.start(record);
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      for (std::size_t i = 0; i < step.statistics.size(); ++i) {
        add({run, step, i});
        const fp16::ExponentHistogram& exponents = step.statistics[i].exponents;
        if (!exponents.lowest_exponent()) continue;
        for (int e = *exponents.lowest_exponent(); e <= *exponents.highest_exponent(); ++e) {
          if (exponents.octave(e).total != 0) add_octave({run, step, i, e});
        }
      }
    }
  }
}

}  // namespace experiments
