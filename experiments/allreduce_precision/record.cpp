#include "experiments/allreduce_precision/record.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/counted_gradients.h"

namespace experiments::allreduce_precision {
namespace {

void write_table(RunRecord& record, std::string_view name, const std::vector<Measured>& rows) {
  Table& table =
      record.table(name, {"source", "scale_log2", "workers", "algorithm", "precision", "division",
                          "predivisor", "relative_error", "relative_error_of_one_rounding",
                          "fraction_flushed", "norm_share_flushed", "fraction_subnormal", "fraction_overflow",
                          "fraction_inputs_flushed", "fraction_inputs_overflow"});
  for (const Measured& row : rows) {
    const auto& [source, scale_log2, workers] = row.setting;
    table.row({name_of(source), scale_log2, workers, sim::name_of(row.how.algorithm),
               sim::name_of(row.how.precision), sim::name_of(row.how.division),
               sim::predivisor(row.how.division, workers), row.loss.relative_error(),
               row.relative_error_of_one_rounding, row.loss.fraction_flushed(), row.loss.norm_share_flushed(),
               row.loss.fraction_subnormal(), row.loss.fraction_overflow(), row.fraction_inputs_flushed,
               row.fraction_inputs_overflow});
  }
}

Value end_of(const std::optional<Window>& window, int Window::*end) {
  return value_or_none(window ? std::optional((*window).*end) : std::nullopt);
}

void write_windows(RunRecord& record, const Findings& found, const Options& options) {
  Table& table = record.table("windows", {"source", "workers", "division", "usable_scale_lowest_log2",
                                          "usable_scale_highest_log2", "inputs_overflow_from_log2"});
  for (const Source source : sources) {
    for (const std::size_t workers : measured_workers(options.max_workers_log2)) {
      for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
        const auto window = usable_scales(found.scales, source, workers, division);
        table.row({name_of(source), workers, sim::name_of(division), end_of(window, &Window::lowest),
                   end_of(window, &Window::highest),
                   value_or_none(first_input_overflow(found.scales, source, workers))});
      }
    }
  }
}

void summarise_algorithms(RunRecord& record, const Findings& found, const Setting& setting) {
  const std::string prefix = fmt::format("{}.relative_error.", name_of(setting.source));
  for (const sim::AllReduceAlgorithm algorithm : measured_algorithms) {
    for (const sim::AllReducePrecision precision : sim::all_reduce_precisions) {
      const Measured& measured = at(found, setting, {.algorithm = algorithm, .precision = precision});
      record.summary(fmt::format("{}{}.{}", prefix, sim::name_of(algorithm), sim::name_of(precision)),
                     measured.loss.relative_error());
    }
  }
  record.summary(prefix + "one_rounding", at(found, setting, usual).relative_error_of_one_rounding);
}

void summarise_divisions(RunRecord& record, const Findings& found, const Setting& setting) {
  const auto& [source, scale_log2, workers] = setting;
  for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
    const sim::AllReduce how = usual_with(division);
    const auto add = [&](std::string_view key, const Value& value) {
      record.summary(fmt::format("{}.{}.{}", name_of(setting.source), key, sim::name_of(division)), value);
    };
    const Measured& unscaled = at(found, {.source = source, .scale_log2 = 0, .workers = workers}, how);
    const auto window = usable_scales(found.scales, source, workers, division);
    add("flushed_at_scale_1", unscaled.loss.fraction_flushed());
    add("inputs_flushed_at_scale_1", unscaled.fraction_inputs_flushed);
    add("overflow_from_workers", value_or_none(first_overflow(found.all_reduces, source, scale_log2, how)));
    add("usable_scale_lowest_log2", end_of(window, &Window::lowest));
    add("usable_scale_highest_log2", end_of(window, &Window::highest));
  }
}

}  // namespace

const Measured& at(const Findings& found, const Setting& setting, const sim::AllReduce& how) {
  return *find(found.all_reduces, setting, how);
}

sim::AllReduce usual_with(sim::AllReduceDivision division) {
  sim::AllReduce how = usual;
  how.division = division;
  return how;
}

void write_tables(RunRecord& record, const Findings& found, const Options& options) {
  write_table(record, "allreduce", found.all_reduces);
  write_table(record, "scales", found.scales);
  write_windows(record, found, options);
}

void write_summary(RunRecord& record, const Findings& found, const Options& options) {
  const std::size_t workers = measured_workers(options.max_workers_log2).back();
  record.summary("workers", workers);
  record.summary("elements", found.elements);
  record.summary("scale_log2", found.scale_log2);
  for (const Source source : sources) {
    const Setting setting{.source = source, .scale_log2 = found.scale_log2, .workers = workers};
    summarise_algorithms(record, found, setting);
    summarise_divisions(record, found, setting);
  }
}

}  // namespace experiments::allreduce_precision
