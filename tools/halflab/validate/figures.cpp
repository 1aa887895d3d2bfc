#include <fmt/format.h>

#include <string>
#include <vector>

#include "experiments/frame/figure.h"
#include "tools/halflab/code_text.h"
#include "tools/halflab/validate/findings.h"

namespace halflab::validate {
namespace {

using namespace experiments;

std::string part_name(const Findings& found, std::size_t part) {
  const fp16::Format& format = found.operands->format;
  return part == parts ? "NaN" : value_text(format, first_code(format, part));
}

/// Tics with the numbers at which parts begin.
std::string part_tics(const Findings& found) {
  std::string tics;
  for (std::size_t part = 0; part < parts; part += parts / 8)
    tics += fmt::format("\"{}\" {}, ", part_name(found, part), static_cast<double>(part) - 0.5);
  return fmt::format("set xtics ({}\"NaN\" {})\n", tics, parts);
}

Figure operands_figure(const Findings& found) {
  return {
      .name = "operands",
      .title = fmt::format("Where results of {} differ", found.function->name),
      .caption = fmt::format("The numbers of {} from the lowest to the highest in {} parts of equally many, "
                             "then the NaNs.",
                             found.operands->name, parts),
      .script = part_tics(found) +
                fmt::format("set xrange [-1:{}]\nset yrange [0:*]\nset xlabel \"operand\"\nset ylabel "
                            "\"results that differ, %\"\nset style fill solid 0.8\nset boxwidth 0.9\n",
                            parts + 1) +
                plot({{.table = "parts",
                       .x = "column('part_a')",
                       .y = "column('differing_percent')",
                       .style = "with boxes linecolor rgb vermillion"}})};
}

Figure pairs_figure(const Findings& found) {
  HeatMapAxes axes{.tensors = {},
                   .lowest = -0.5,
                   .highest = static_cast<double>(parts) + 0.5,
                   .x_label = "second operand",
                   .color_label = "results that differ, %",
                   .x_marks = part_tics(found)};
  for (std::size_t part = 0; part <= parts; ++part) axes.tensors.push_back(part_name(found, part));
  return {.name = "operands",
          .title = fmt::format("Where results of {} differ", found.function->name),
          .caption =
              fmt::format("The first operand from top to bottom, the second from left to right, each by the "
                          "numbers of {} in {} parts of equally many, then the NaNs; white: nothing differs.",
                          found.operands->name, parts),
          .script = heat_maps({{.table = "parts",
                                .title = "",
                                .x = "column('part_b')",
                                .percent = "column('differing_percent')"}},
                              axes),
          .width = heat_map_width(axes, 1),
          .height = heat_map_height(axes)};
}

}  // namespace

void draw_figures(Run& run, const Findings& found) {
  if (found.counts.differing == 0) return;
  run.figure(found.function->arity == 1 ? operands_figure(found) : pairs_figure(found));
}

}  // namespace halflab::validate
