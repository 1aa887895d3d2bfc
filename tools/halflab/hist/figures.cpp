#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "experiments/frame/figure.h"
#include "experiments/frame/figure_style.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "experiments/gradient_histogram/paper3.h"
#include "tools/halflab/hist/findings.h"

namespace halflab::hist {
namespace {

using namespace experiments;

constexpr std::size_t most_tensors = 60;

struct Borders {
  double lowest, zero, subnormal, normal, highest;
};

/// The borders of the format and of the axis, as exponents of what the files hold. The axis has binary32's range at most:
/// with doubles beyond it, little else would be seen.
Borders borders_of(const Findings& found) {
  const fp16::Format& format = found.format.format;
  const double by = found.scaled_by_log2;
  const Exponents& exponents = found.total.exponents;
  const double zero = format.emin_subnormal() - 1 + by, normal = format.emin() + by,
               top = format.emax() + 1 + by;
  const int lowest = std::max(*exponents.lowest_exponent(), fp16::ExponentHistogram::min_exponent),
            highest = std::min(*exponents.highest_exponent(), fp16::ExponentHistogram::max_exponent);
  return {.lowest = std::min<double>(lowest, zero - 2),
          .zero = zero,
          .subnormal = normal,
          .normal = top,
          .highest = std::max<double>(highest + 1, top + 1)};
}

/// A sentence on values outside of the axis; empty where there are none.
std::string outside_text(const Exponents& exponents, const Borders& at) {
  std::uint64_t outside = 0;
  for (int e = *exponents.lowest_exponent(); e <= *exponents.highest_exponent(); ++e)
    outside += e < at.lowest || e >= at.highest ? exponents.octave(e).total : 0;
  if (outside == 0) return "";
  return fmt::format(" {} of the values lie outside of the axis.",
                     percent(static_cast<double>(outside) / static_cast<double>(exponents.total())));
}

Figure histogram_figure(const Findings& found) {
  const Borders at = borders_of(found);
  const Exponents& exponents = found.total.exponents;
  const double zeros = static_cast<double>(exponents.zero()) / static_cast<double>(exponents.total());
  std::vector<Zone> bands{{at.lowest, at.zero, fmt::format("zero in {}", found.format.name), "vermillion"}};
  if (at.subnormal > at.zero) bands.push_back({at.zero, at.subnormal, "subnormal", "orange"});
  bands.push_back({at.subnormal, at.normal, "normal", "green"});
  bands.push_back({at.normal, at.highest, "", "vermillion"});
  return {
      .name = "histogram",
      .title = "Values of all tensors by magnitude",
      .caption = fmt::format(
          "{} of the values are exact zeros and not drawn. Left of the first border {} rounds to zero{}.{}",
          percent(zeros), found.format.name,
          found.scaled_by_log2 == 0
              ? " at S = 1"
              : fmt::format(", once the files' scale 2^{} is divided out", found.scaled_by_log2),
          outside_text(exponents, at)),
      .script =
          zones(bands) +
          fmt::format("set xrange [{}:{}]\nset xtics {}\nset xlabel \"binary exponent, floor(log₂ |x|)\"\n"
                      "set ylabel \"share of all values, %\"\nset yrange [0:*]\nset style fill solid "
                      "0.8\nset boxwidth 0.9\n",
                      at.lowest, at.highest, octaves_between_tics(at.highest - at.lowest, 14)) +
          plot({{.table = "histogram",
                 .where = column_is("tensor", found.total.name),
                 .x = "column('exponent_log2') + 0.5",
                 .y = "column('share_percent')",
                 .style = "with boxes linecolor rgb blue"}})};
}

/// The tensors that lose most, in the order of the files; `left_out` says of which others.
std::vector<const TensorFound*> drawn_tensors(const Findings& found, std::string& left_out) {
  std::vector<const TensorFound*> drawn = found.by_loss();
  if (drawn.size() > most_tensors) {
    left_out = fmt::format(" Drawn are the {} of {} tensors that lose most.", most_tensors, drawn.size());
    drawn.resize(most_tensors);
  }
  std::ranges::sort(drawn);
  return drawn;
}

std::vector<std::string> names_of(const std::vector<const TensorFound*>& tensors) {
  std::vector<std::string> names;
  for (const TensorFound* const tensor : tensors) names.push_back(tensor->name);
  return names;
}

/// Where a tensor overflows, right of its largest scale, in grey.
std::string overflow_marks(const Findings& found, const std::vector<const TensorFound*>& tensors,
                           double highest) {
  std::string marks;
  for (std::size_t row = 1; row <= tensors.size(); ++row) {
    const double first = *found.forecast(*tensors[row - 1]).headroom_log2() + 0.5;
    if (first < highest)
      marks += fmt::format(
          "set object rectangle from {},{}.5 to {},{}.5 fillcolor rgb '{}' fillstyle solid noborder\n", first,
          row - 1, highest, row, figure_style::beyond_range);
  }
  return marks;
}

Figure tensors_figure(const Findings& found) {
  const Borders at = borders_of(found);
  std::string left_out;
  const bool has_room = at.subnormal - at.zero > 0.15 * (at.highest - at.lowest);
  const HeatMapAxes axes{
      .tensors = names_of(drawn_tensors(found, left_out)),
      .lowest = at.lowest,
      .highest = at.highest,
      .x_label = "binary exponent, floor(log₂ |x|)",
      .color_label = "share of values, %",
      .x_marks = marks({{.x = at.zero, .label = "zero", .label_height = 1, .side = Mark::Side::left},
                        {.x = at.subnormal,
                         .label = has_room ? "subnormal" : "",
                         .label_height = 1,
                         .side = Mark::Side::left},
                        {.x = at.normal, .label = "overflow", .label_height = 1}})};
  return {
      .name = "tensors",
      .title = "Each tensor by magnitude",
      .caption = fmt::format(
          "Left of the lines {} rounds to zero, to subnormal numbers; right of the last it overflows.{}{}",
          found.format.name, left_out, outside_text(found.total.exponents, at)),
      .script = heat_maps({{.table = "histogram",
                            .title = "",
                            .x = "column('exponent_log2') + 0.5",
                            .percent = "column('share_percent')"}},
                          axes),
      .width = heat_map_width(axes, 1),
      .height = heat_map_height(axes)};
}

Figure scales_figure(const Findings& found) {
  int highest = first_scale_log2(found) + 8;
  for (const TensorFound& tensor : found.tensors)
    highest = std::max(highest, found.forecast(tensor).headroom_log2().value_or(highest));
  std::string left_out;
  const std::vector<const TensorFound*> drawn = drawn_tensors(found, left_out);
  const double right = std::min(highest, 60) + 0.5;
  const HeatMapAxes axes{.tensors = names_of(drawn),
                         .lowest = first_scale_log2(found) - 0.5,
                         .highest = right,
                         .x_label = "log₂ of the scale S (grey: something overflows)",
                         .color_label = "become zero, %",
                         .x_marks = overflow_marks(found, drawn, right) +
                                    marks({{.x = static_cast<double>(found.shown_log2),
                                            .label = fmt::format("S = 2^{{{}}}", found.shown_log2),
                                            .label_height = 1}})};
  return {
      .name = "scales",
      .title = fmt::format("What becomes zero in {} at each scale", found.format.name),
      .caption = fmt::format("Of each tensor's non-zero values; white: nothing; grey: something overflows. "
                             "The line is the {} scale.{}",
                             found.shown_log2 == found.recommended_log2 ? "recommended" : "asked", left_out),
      .script = heat_maps({{.table = "scales",
                            .title = "",
                            .x = "column('scale_log2')",
                            .percent = "(100 * column('fraction_flushed'))"}},
                          axes),
      .width = heat_map_width(axes, 1),
      .height = heat_map_height(axes)};
}

/// The exponent below which less than one non-zero value in a thousand lies.
int left_edge(const Exponents& exponents) {
  if (exponents.nonzero_finite() == 0) return 0;
  int e = *exponents.lowest_exponent();
  for (std::uint64_t below = exponents.octave(e).total; below * 1000 < exponents.nonzero_finite();)
    below += exponents.octave(++e).total;
  return e;
}

/// What lies left of the axis at the smallest scale, as a clause.
std::string beyond_text(const Exponents& exponents, double lowest, int scale_log2) {
  std::uint64_t beyond = 0;
  const int highest = exponents.highest_exponent().value_or(-1);
  for (int e = exponents.lowest_exponent().value_or(0); e <= highest && e < lowest; ++e)
    beyond += exponents.octave(e).total;
  if (beyond == 0) return ".";
  return fmt::format("; at S = 2^{} {} of them lie left of the axis.", scale_log2,
                     percent(static_cast<double>(beyond) / static_cast<double>(exponents.total())));
}

/// At no scale, at that which trains in the paper, and at the shown one.
void draw_in_layout_of_paper(Run& run, const Findings& found) {
  const Exponents& exponents = found.total.exponents;
  std::vector<int> scales{0, 3};
  // Beyond these scales a histogram of binary32's octaves is not exact of doubles outside them.
  const int stored_log2 = found.shown_log2 - found.scaled_by_log2;
  if (exponents.are_within_binary32() || (stored_log2 >= -112 && stored_log2 <= 123))
    scales.push_back(found.shown_log2);
  std::ranges::sort(scales);
  scales.erase(std::ranges::unique(scales).begin(), scales.end());
  constexpr double paper_edge = -40, farthest = -64;
  const int shift = scales.front() - found.scaled_by_log2;
  const double lowest =
      std::clamp(2 * std::floor((left_edge(exponents) + shift) / 2.0), farthest, paper_edge);
  const fp16::ExponentHistogram in_binary32 = exponents.in_binary32();
  gradient_histogram::draw_paper3(
      run, {.gradients = in_binary32,
            .scaled_by_log2 = found.scaled_by_log2,
            .scales_log2 = scales,
            .lowest = lowest,
            .noun = "value",
            .title = "Values of all tensors, times a loss scale S",
            .caption = fmt::format("{} of {}{}", counted(exponents.total(), "value"),
                                   counted(found.tensors.size(), "tensor"),
                                   beyond_text(exponents, lowest - shift, scales.front()))});
}

}  // namespace

void draw_figures(Run& run, const Findings& found, std::string_view figure) {
  if (figure == paper3 && found.total.exponents.total() > 0) draw_in_layout_of_paper(run, found);
  if (found.total.exponents.nonzero_finite() == 0) return;
  run.figure(histogram_figure(found));
  run.figure(tensors_figure(found));
  run.figure(scales_figure(found));
}

}  // namespace halflab::hist
