#include "experiments/gradient_histogram/panels.h"

#include <fmt/format.h>

#include <vector>

#include "experiments/frame/figure.h"
#include "experiments/frame/text_table.h"

namespace experiments::gradient_histogram {

std::string fp16_zones(double lowest, double highest) {
  std::vector<Zone> bands{{lowest, -25, "zero in FP16", "vermillion"},
                          {-25, -14, "subnormal", "orange"},
                          {-14, fp16_overflow_log2, "FP16 normal range", "green"}};
  if (highest > fp16_overflow_log2) bands.push_back({fp16_overflow_log2, highest, "infinite", "vermillion"});
  return zones(bands) + "set offsets 0, 0, 0, 0\n";
}

std::string fp16_edges() {
  return marks({{.x = -24, .label = "2^{-24}: smallest subnormal", .label_height = 0.86},
                {.x = -25, .label = "2^{-25}: nearest-even zero", .label_height = 0.77, .label_x = -24}});
}

std::string zeros_panel(const ZerosPanel& zeros) {
  return fmt::format(
             "set lmargin at screen 0.09\nset rmargin at screen 0.17\nset grid noxtics\n"
             "set xrange [-1:1]\nset yrange [0:120]\nset xtics (\"exact 0\" 0)\nset ytics 0, 25, 100\n"
             "set xlabel \"\"\nset ylabel \"share of all values, %\"\n"
             "set label \"{}\" at 0, {} center offset 0,0.6\n"
             "set label \"{}\" at graph 0, graph 1.08 left font \",13\"\n",
             percent(zeros.percent / 100), zeros.percent, zeros.title) +
         plot({{.table = zeros.table,
                .where = zeros.where,
                .x = "0",
                .y = "column('share_percent')",
                .style = "with boxes linecolor rgb grey"}});
}

std::string exponents_axes(double lowest, double highest, double highest_percent, std::string_view x_label) {
  return fmt::format(
      "unset label\nset lmargin at screen 0.255\nset rmargin at screen 0.98\nset grid xtics\n"
      "set xrange [{}:{}]\nset yrange [0:{}]\nset xtics {}\nset ytics autofreq\nset ylabel \"\"\n"
      "set xlabel \"{}\"\n",
      lowest, highest, highest_percent, octaves_between_tics(highest - lowest, 16), x_label);
}

}  // namespace experiments::gradient_histogram
