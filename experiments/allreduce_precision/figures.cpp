#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "experiments/allreduce_precision/findings.h"

namespace experiments::allreduce_precision {
namespace {

std::string_view words(sim::AllReduceDivision division) {
  switch (division) {
    case sim::AllReduceDivision::before:
      return "divided before";
    case sim::AllReduceDivision::split:
      return "before and after";
    case sim::AllReduceDivision::after:
      return "after";
  }
  return "";
}

/// Names as texts, of which gnuplot makes no subscripts.
std::string words(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string rows_of(Source source, const sim::AllReduce& how) {
  return fmt::format("{} && {} && {} && {}", column_is("source", name_of(source)),
                     column_is("algorithm", sim::name_of(how.algorithm)),
                     column_is("precision", sim::name_of(how.precision)),
                     column_is("division", sim::name_of(how.division)));
}

std::string rows_at(std::string_view column, int value) {
  return fmt::format(" && column('{}') == {}", column, value);
}

std::string workers_axis(const Options& options) {
  const std::size_t most = std::size_t{1} << options.max_workers_log2;
  return fmt::format("set logscale x 2\nset xrange [{}:{}]\nset xtics 2\nset xlabel \"workers N\"\n",
                     most == 2 ? 1 : 2, most);
}

constexpr std::string_view error_without_overflow =
    "column('fraction_overflow') > 0 || column('fraction_inputs_overflow') > 0 ? NaN : "
    "column('relative_error')";

/// Relative errors of the algorithms over the workers, a panel for each source.
Figure error_figure(const Findings& found, const Options& options) {
  std::vector<double> errors;
  for (const Measured& measured : found.all_reduces) {
    if (measured.setting.scale_log2 != found.scale_log2) continue;
    errors.push_back(measured.relative_error_of_one_rounding);
    if (measured.how.precision == sim::AllReducePrecision::fp16 &&
        measured.how.division == sim::AllReduceDivision::before)
      errors.push_back(measured.loss.relative_error());
  }
  struct Line {
    sim::AllReduce how;
    std::string title;
    std::string_view y = error_without_overflow;
    std::string_view style = {};  ///< none: of the next line type, with points
  };
  std::vector<Line> lines{{.how = {},
                           .title = "one rounding",
                           .y = "column('relative_error_of_one_rounding')",
                           .style = "with lines linecolor rgb grey linewidth 7"}};  // others may lie upon it
  for (const sim::AllReduceAlgorithm algorithm : measured_algorithms)
    lines.push_back({.how = {.algorithm = algorithm}, .title = words(sim::name_of(algorithm))});
  lines.push_back({.how = {.algorithm = sim::AllReduceAlgorithm::direct,
                           .precision = sim::AllReducePrecision::fp32_accumulation},
                   .title = "direct, FP32 sums"});
  std::vector<std::string> titles;
  for (const Line& line : lines) titles.push_back(line.title);
  const KeyColumn key(titles);
  std::string script = "set multiplot\n" + workers_axis(options);
  for (const Source source : sources) {
    std::vector<Curve> curves;
    for (const Line& line : lines) {
      curves.push_back({.table = "allreduce",
                        .where = rows_of(source, line.how) + rows_at("scale_log2", found.scale_log2),
                        .x = "column('workers')",
                        .y = std::string(line.y),
                        .style = line.style.empty()
                                     ? fmt::format("with linespoints linetype {}", curves.size())
                                     : std::string(line.style),
                        .title = source == sources.front() ? line.title : ""});
    }
    script += panel(static_cast<int>(source), static_cast<int>(sources.size())) + key.script() +
              log_axis(errors) + fmt::format("set ylabel \"relative error, {}\"\n", name_of(source)) +
              plot(curves);
  }
  return {.name = "error",
          .title = "What the order of additions costs",
          .caption = {},
          .script = script + "unset multiplot\n",
          .width = key.figure_width(),
          .height = 640};
}

/// In the key alone: what dashed lines are. `below` lies under the y axis.
Curve dashed_in_key(std::string below, std::string title) {
  return {.table = "allreduce",
          .x = "column('workers')",
          .y = std::move(below),
          .style = "with lines linecolor rgb black linewidth 2 dashtype 2",
          .title = std::move(title)};
}

/// A share in % of the network's gradients at one scale, by the order of dividing.
std::vector<Curve> share_curves(std::string_view column, int scale_log2, std::string_view style,
                                bool titles) {
  std::vector<Curve> curves;
  for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
    curves.push_back(
        {.table = "allreduce",
         .where = rows_of(Source::network, usual_with(division)) + rows_at("scale_log2", scale_log2),
         .x = "column('workers')",
         .y = fmt::format("column('{0}') > 0 ? 100 * column('{0}') : NaN", column),
         .style = fmt::format("with linespoints linetype {} {}", curves.size() + 1, style),
         .title = titles ? std::string(words(division)) : std::string()});
  }
  return curves;
}

/// What the three orders of dividing flush at S = 1 and overflow at the other scale.
std::string division_script(const Findings& found, const Options& options) {
  std::vector<double> flushed, overflowed;
  for (const Measured& measured : found.all_reduces) {
    if (measured.setting.source != Source::network || measured.how != usual_with(measured.how.division))
      continue;
    if (measured.setting.scale_log2 == 0) {
      flushed.push_back(100 * measured.loss.fraction_flushed());
      flushed.push_back(100 * measured.fraction_inputs_flushed);
    }
    if (measured.setting.scale_log2 == found.scale_log2)
      overflowed.push_back(100 * measured.loss.fraction_overflow());
  }
  std::vector<Curve> vanished = share_curves("fraction_flushed", 0, "", true);
  std::ranges::move(share_curves("fraction_inputs_flushed", 0, "dashtype 2", false),
                    std::back_inserter(vanished));
  vanished.push_back(dashed_in_key("1e-99", "the workers' own values"));
  return "set multiplot\nset lmargin 10\n" + workers_axis(options) + panel(0, 2) + log_axis(flushed) +
         "set ylabel \"flushed at S = 1, %\"\n" + plot(vanished) + panel(1, 2) + log_axis(overflowed) +
         fmt::format("set ylabel \"overflow at S = 2^{{{}}}, %\"\n", found.scale_log2) +
         plot(share_curves("fraction_overflow", found.scale_log2, "", false)) + "unset multiplot\n";
}

/// From which loss scale on, and up to which, the three are good.
std::string windows_script(const Findings& found, const Options& options) {
  std::vector<Curve> curves;
  for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
    const std::string rows = column_is("source", name_of(Source::network)) + " && " +
                             column_is("division", sim::name_of(division));
    const std::string line = fmt::format("with linespoints linetype {}", curves.size() / 2 + 1);
    curves.push_back({.table = "windows",
                      .where = rows,
                      .x = "column('workers')",
                      .y = "column('usable_scale_highest_log2')",
                      .style = line,
                      .title = std::string(words(division))});
    curves.push_back({.table = "windows",
                      .where = rows,
                      .x = "column('workers')",
                      .y = "column('usable_scale_lowest_log2')",
                      .style = line + " dashtype 2"});
  }
  curves.push_back({.table = "windows",
                    .where = column_is("source", name_of(Source::network)) + " && " +
                             column_is("division", sim::name_of(sim::AllReduceDivision::before)),
                    .x = "column('workers')",
                    .y = "column('inputs_overflow_from_log2')",
                    .style = "with lines linecolor rgb black dashtype 3",
                    .title = "workers' own overflow"});
  curves.push_back(dashed_in_key("-9", "the lowest"));
  return workers_axis(options) + "set key maxcols 3\n" +
         fmt::format("set yrange [-0.5:{}]\nset ytics {}\nset ylabel \"log₂ of the loss scale S\"\n",
                     found.max_scale_log2 + 0.5, octaves_between_tics(found.max_scale_log2, 8)) +
         plot(curves);
}

}  // namespace

void draw_figures(Run& run, const Findings& found, const Options& options, const std::string& setting) {
  Figure error = error_figure(found, options);
  error.caption = setting + fmt::format(
                                " Error against the exact mean of what the workers hold; one rounding: of "
                                "that mean, rounded to FP16. "
                                "In FP16, but for the FP32 sums of a worker that is sent all values; divided "
                                "before the sum, S = 2^{}. "
                                "Round a ring, or one after the other (direct), the sum of 2^11 values of "
                                "one size is so large that a "
                                "further one is rounded away.",
                                found.scale_log2);
  run.figure(error);
  run.figure(
      {.name = "division",
       .title = "Where to divide: what vanishes, what overflows",
       .caption = setting +
                  " Gradients of the network, recursive doubling in FP16. Solid: elements of the mean; "
                  "dashed: the workers' own values, made zero by the division before the sum.",
       .script = division_script(found, options),
       .height = 640});
  run.figure(
      {.name = "windows",
       .title = "Which loss scales are good, by where the division is done",
       .caption = setting +
                  " Gradients of the network, recursive doubling in FP16. Good scales are those between "
                  "the dashed line (below it the error is more than a quarter above its least) and the "
                  "solid one (above it the mean overflows).",
       .script = windows_script(found, options)});
}

}  // namespace experiments::allreduce_precision
