#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/allreduce_precision/findings.h"
#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/training/counted_gradients.h"

namespace experiments::allreduce_precision {
namespace {

const std::vector<Column<Measured>> measured_columns{
    {"source", "", [](auto& m) { return name_of(m.setting.source); }},
    {"scale_log2", "log2", [](auto& m) { return m.setting.scale_log2; }},
    {"workers", "workers", [](auto& m) { return m.setting.workers; }},
    {"algorithm", "", [](auto& m) { return sim::name_of(m.how.algorithm); }},
    {"precision", "", [](auto& m) { return sim::name_of(m.how.precision); }},
    {"division", "", [](auto& m) { return sim::name_of(m.how.division); }},
    {"predivisor", "1", [](auto& m) { return sim::predivisor(m.how.division, m.setting.workers); }},
    {"relative_error", "1", [](auto& m) { return m.loss.relative_error(); }},
    {"relative_error_of_one_rounding", "1", &Measured::relative_error_of_one_rounding},
    {"fraction_flushed", "1", [](auto& m) { return m.loss.fraction_flushed(); }},
    {"norm_share_flushed", "1", [](auto& m) { return m.loss.norm_share_flushed(); }},
    {"fraction_subnormal", "1", [](auto& m) { return m.loss.fraction_subnormal(); }},
    {"fraction_overflow", "1", [](auto& m) { return m.loss.fraction_overflow(); }},
    {"fraction_inputs_flushed", "1", &Measured::fraction_inputs_flushed},
    {"fraction_inputs_overflow", "1", &Measured::fraction_inputs_overflow}};

const TableOf<Measured> allreduce_table{
    .name = "allreduce",
    .rows = "each kind of all-reduce of each source at S = 1 and at the other scale",
    .columns = measured_columns};
const TableOf<Measured> scales_table{.name = "scales",
                                     .rows = "each scale of each source, by recursive doubling in FP16",
                                     .columns = measured_columns};

Value end_of(const std::optional<Window>& window, int Window::*end) {
  return value_or_none(window ? std::optional((*window).*end) : std::nullopt);
}

struct WindowRow {
  const Findings& found;
  Source source;
  std::size_t workers;
  sim::AllReduceDivision division;
  std::optional<Window> window = usable_scales(found.scales, source, workers, division);
};

const TableOf<WindowRow> windows_table{
    .name = "windows",
    .rows = "each division of each source and number of workers",
    .columns = {
        {"source", "", [](auto& r) { return name_of(r.source); }},
        {"workers", "workers", &WindowRow::workers},
        {"division", "", [](auto& r) { return sim::name_of(r.division); }},
        {"usable_scale_lowest_log2", "log2", [](auto& r) { return end_of(r.window, &Window::lowest); }},
        {"usable_scale_highest_log2", "log2", [](auto& r) { return end_of(r.window, &Window::highest); }},
        {"inputs_overflow_from_log2", "log2",
         [](auto& r) { return value_or_none(first_input_overflow(r.found.scales, r.source, r.workers)); }}}};

void write_tables(RunRecord& record, const Findings& found, const Options& options) {
  allreduce_table.write(record, found.all_reduces);
  scales_table.write(record, found.scales);
  const auto add = windows_table.start(record);
  for (const Source source : sources) {
    for (const std::size_t workers : measured_workers(options.max_workers_log2)) {
      for (const sim::AllReduceDivision division : sim::all_reduce_divisions)
        add({found, source, workers, division});
    }
  }
}

const SummaryOf<WindowRow> setting_summary{
    {{"workers", "the largest N, to which the keys below refer", &WindowRow::workers},
     {"elements", "elements of the gradient that were averaged", [](auto& r) { return r.found.elements; }},
     {"scale_log2", "log2 of the loss scale S", [](auto& r) { return r.found.scale_log2; }}}};

const SummaryOf<Measured> algorithms_summary{
    {{"<source>.relative_error.<algorithm>.<precision>",
      "||mean - exact mean|| / ||exact mean|| at S, divided before the sum",
      [](auto& m) { return m.loss.relative_error(); }}}};
const SummaryOf<Measured> rounding_summary{
    {{"<source>.relative_error.one_rounding", "of the exact mean rounded once to FP16",
      &Measured::relative_error_of_one_rounding}}};

/// With the largest number of workers.
struct DivisionRow {
  WindowRow of;

  const Measured& unscaled() const {
    return at(of.found, {.source = of.source, .scale_log2 = 0, .workers = of.workers},
              usual_with(of.division));
  }
};

const SummaryOf<DivisionRow> divisions_summary{
    {{"<source>.flushed_at_scale_1.<division>",
      "mean non-zero and result zero, over the non-zero, at S = 1, by recursive doubling in FP16 as in the "
      "keys below",
      [](auto& r) { return r.unscaled().loss.fraction_flushed(); }},
     {"<source>.inputs_flushed_at_scale_1.<division>",
      "workers' non-zero values that the division before the sum makes zero",
      [](auto& r) { return r.unscaled().fraction_inputs_flushed; }},
     {"<source>.overflow_from_workers.<division>",
      "the smallest N at which the mean overflows at S, or \"none\"",
      [](auto& r) {
        return value_or_none(first_overflow(r.of.found.all_reduces, r.of.source, r.of.found.scale_log2,
                                            usual_with(r.of.division)));
      }},
     {"<source>.usable_scale_lowest_log2.<division>",
      "the lowest of the scales without overflow whose error is at most a quarter above the least",
      [](auto& r) { return end_of(r.of.window, &Window::lowest); }},
     {"<source>.usable_scale_highest_log2.<division>", "the highest of these",
      [](auto& r) { return end_of(r.of.window, &Window::highest); }}}};

void write_summary(RunRecord& record, const Findings& found, const Options& options) {
  const std::size_t workers = measured_workers(options.max_workers_log2).back();
  setting_summary.write(record, {found, sources.front(), workers, sim::all_reduce_divisions.front()});
  for (const Source source : sources) {
    const Setting setting{.source = source, .scale_log2 = found.scale_log2, .workers = workers};
    for (const sim::AllReduceAlgorithm algorithm : measured_algorithms) {
      for (const sim::AllReducePrecision precision : measured_precisions) {
        algorithms_summary.write(record, at(found, setting, {.algorithm = algorithm, .precision = precision}),
                                 {name_of(source), sim::name_of(algorithm), sim::name_of(precision)});
      }
    }
    rounding_summary.write(record, at(found, setting, usual), {name_of(source)});
    for (const sim::AllReduceDivision division : sim::all_reduce_divisions)
      divisions_summary.write(record, {{found, source, workers, division}},
                              {name_of(source), sim::name_of(division)});
  }
}

std::string error_text(const Measured& measured) {
  return measured.overflows() ? "overflow" : fmt::format("{:.2g}", measured.loss.relative_error());
}

/// Relative errors by algorithm and precision at S. No row for what repeats another: where FP32 accumulation
/// is FP16 bit for bit, and FP32 in other orders than the ring's.
TextTable algorithms_table(const Findings& found, const std::vector<std::size_t>& workers) {
  using enum sim::AllReduceAlgorithm;
  using enum sim::AllReducePrecision;
  std::vector<sim::AllReduce> rows;
  for (const sim::AllReduceAlgorithm algorithm : measured_algorithms)
    rows.push_back({.algorithm = algorithm});
  rows.push_back({.algorithm = binary_tree, .precision = fp32_accumulation});
  rows.push_back({.algorithm = direct, .precision = fp32_accumulation});
  rows.push_back({.algorithm = ring, .precision = fp32});
  TextTable table{.columns = {"order of additions", "precision"}, .rows = {}};
  for (const sim::AllReduce& how : rows)
    table.rows.push_back(
        {std::string(sim::name_of(how.algorithm)), std::string(sim::name_of(how.precision))});
  for (const Source source : sources) {
    for (const std::size_t count : workers) {
      const Setting setting{.source = source, .scale_log2 = found.scale_log2, .workers = count};
      table.columns.push_back(fmt::format("{}, N = {}", name_of(source), count));
      for (std::size_t row = 0; row < rows.size(); ++row)
        table.rows[row].push_back(error_text(at(found, setting, rows[row])));
    }
  }
  return table;
}

Setting network_at(int scale_log2, std::size_t workers) {
  return {.source = Source::network, .scale_log2 = scale_log2, .workers = workers};
}

/// What the order of dividing flushes and overflows, and at which scales it is good.
TextTable divisions_table(const Findings& found, const std::vector<std::size_t>& workers) {
  TextTable table{.columns = {"division", "values flushed, S = 1", "error, S = 1",
                              fmt::format("overflow, S = 2^{}", found.scale_log2)},
                  .rows = {}};
  for (const std::size_t count : workers) table.columns.push_back(fmt::format("good S, N = {}", count));
  const Setting unscaled_setting = network_at(0, workers.back());
  for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
    const sim::AllReduce how = usual_with(division);
    const Measured& unscaled = at(found, unscaled_setting, how);
    const auto overflow = first_overflow(found.all_reduces, Source::network, found.scale_log2, how);
    std::vector<std::string> cells{
        std::string(sim::name_of(division)), percent(unscaled.fraction_inputs_flushed), error_text(unscaled),
        overflow
            ? fmt::format("from N = {}", *overflow)
            : (at(found, network_at(found.scale_log2, workers.back()), how).overflows() ? "at the workers"
                                                                                        : "never")};
    for (const std::size_t count : workers) {
      const auto window = usable_scales(found.scales, Source::network, count, division);
      cells.push_back(window ? fmt::format("2^{} .. 2^{}", window->lowest, window->highest) : "none");
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// What it changes that a worker adds in FP32 what it received, order by order.
std::string accumulation_sentence(const Findings& found, std::size_t workers) {
  std::vector<std::string> same, changed;
  for (const sim::AllReduceAlgorithm algorithm : measured_algorithms) {
    const auto loss = [&](sim::AllReducePrecision precision) -> const sim::TwinComparison& {
      return at(found, network_at(found.scale_log2, workers),
                {.algorithm = algorithm, .precision = precision})
          .loss;
    };
    const sim::TwinComparison &half = loss(sim::AllReducePrecision::fp16),
                              &wide = loss(sim::AllReducePrecision::fp32_accumulation);
    const std::string name(sim::name_of(algorithm));
    if (half.error_square == wide.error_square)
      same.push_back(name);
    else
      changed.push_back(fmt::format("{} with {} instead of {}", percent(wide.relative_error()), name,
                                    percent(half.relative_error())));
  }
  std::string sentence = "FP32 accumulation between FP16 messages";
  if (!same.empty())
    sentence += fmt::format(" leaves the error as it is with {}{}", fmt::join(same, ", "),
                            changed.empty() ? "" : "; it makes it ");
  else
    sentence += " makes the error ";
  return sentence + fmt::format("{}.", fmt::join(changed, ", "));
}

std::string order_sentence(const Findings& found, std::size_t workers) {
  using enum sim::AllReduceAlgorithm;
  const auto error = [&](sim::AllReduceAlgorithm algorithm) {
    return percent(
        at(found, network_at(found.scale_log2, workers), {.algorithm = algorithm}).loss.relative_error());
  };
  return fmt::format(
      "Summed in FP16, the mean gradient of {} workers is off by {} round a ring, where one value at a time "
      "meets an ever larger sum, and by {} with recursive doubling, which adds sums of equal weight. {}",
      workers, error(ring), error(recursive_doubling), accumulation_sentence(found, workers));
}

std::string division_sentence(const Findings& found) {
  std::vector<std::string> outcomes;
  for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
    const auto overflow =
        first_overflow(found.all_reduces, Source::network, found.scale_log2, usual_with(division));
    outcomes.push_back(overflow ? fmt::format("overflows from {} workers on", *overflow) : "never overflows");
  }
  return fmt::format(
      "At S = 2^{}, dividing before the sum (as PyTorch's DDP) {}, by about sqrt(N) before and after (FSDP) "
      "{}, "
      "after it (DeepSpeed and Apex by default) {}. For powers of two the three are the same arithmetic some "
      "octaves apart, so that where to divide is a choice of S: before, a mean overflows only where the "
      "workers' own gradients nearly do, and a loss scale keeps what the division would flush; after, S must "
      "be up to N times smaller.",
      found.scale_log2, outcomes[0], outcomes[1], outcomes[2]);
}

void write_verdict(RunRecord& record, const Findings& found, const Options& options,
                   const std::string& setting) {
  const std::vector<std::size_t> workers = shown_workers(options.max_workers_log2);
  if (!found.nonfinite_clause.empty()) {
    record.verdict(found.nonfinite_clause + ": the training itself has diverged.");
  } else if (at(found, network_at(found.scale_log2, workers.back()), usual).fraction_inputs_overflow > 0) {
    record.verdict(fmt::format(
        "At S = 2^{} workers' own gradients overflow, which no order of adding or dividing mends.",
        found.scale_log2));
  } else {
    record.verdict(order_sentence(found, workers.back()));
    record.verdict(division_sentence(found));
  }
  record.verdict(algorithms_table(found, workers).text());
  record.verdict(divisions_table(found, workers).text());
  record.verdict(setting);
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

Outputs outputs() {
  return outputs_of(allreduce_table, scales_table, windows_table, setting_summary, algorithms_summary,
                    rounding_summary, divisions_summary);
}

void report(Run& run, const Findings& found, const Options& options, const std::string& setting) {
  write_tables(run.record(), found, options);
  write_summary(run.record(), found, options);
  draw_figures(run, found, options, setting);
  write_verdict(run.record(), found, options, setting);
}

}  // namespace experiments::allreduce_precision
