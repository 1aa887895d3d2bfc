#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "experiments/formats/findings.h"
#include "experiments/frame/printable.h"
#include "fp16/formats.h"
#include "sim/tensor/log2.h"

namespace experiments::formats {
namespace {

/// What all panels start from; what one of them sets would last into the next drawing.
std::string first_panel() {
  return "set multiplot\nset lmargin at screen 0.11\nset rmargin at screen 0.98\n"
         "set key noenhanced width 1\n" +
         panel(0, 2);
}

/// How many numbers the wider formats have in each octave.
std::string octaves_panel() {
  std::vector<Curve> curves;
  for (const std::string_view name : {"binary32", "tf32", "bfloat16", "binary16", "e5m2", "e4m3", "e2m1"}) {
    curves.push_back({.table = "octaves",
                      .where = column_is("format", name),
                      .x = "column('exponent_log2') + 0.5",
                      .y = "column('values_log2')",
                      .style = fmt::format("with histeps linetype {}", curves.size() + 1),
                      .title = std::string(name)});
  }
  return "set xlabel \"binary exponent of the octave\"\nset xrange [-155:135]\nset xtics 20\nset grid ytics\n"
         "set ylabel \"numbers in the octave, log₂\"\nset yrange [0:25]\nset ytics 5\n"
         "set key maxcols 7\n" +
         plot(curves);
}

/// Every number of the small formats.
std::string numbers_panel() {
  std::string tics, plots;
  int row = 0;
  for (const std::string_view name : {"e8m0", "e2m1", "e2m3", "e3m2", "e4m3", "e5m2"}) {
    const char* separator = row++ == 0 ? "" : ", \\\n  ";
    tics += fmt::format("{}\"{}\" {}", separator, name, row);
    plots += fmt::format(
        "{}\"values.csv\" using ({} ? column('value_log2') : NaN):({} - 0.3):(0):(0.6) with vectors nohead "
        "linewidth 1 linecolor rgb {} notitle",
        separator, column_is("format", name), row, name == "e8m0" ? "grey" : "blue");
  }
  return "set xlabel \"log₂ of the number\"\nset xrange [-17:17]\nset xtics 2\nset ylabel \"\"\n"
         "set grid noytics\n" +
         fmt::format("set yrange [0.4:{}.6]\nset ytics ({})\nplot {}\n", row, tics, plots);
}

/// The schemes shown over the spread, those of a column of the key together; block scales are drawn solid.
std::vector<Curve> spread_curves(const std::string& y, bool titles) {
  struct Line {
    std::string_view name;
    bool block;
    int linetype;
  };
  std::vector<Curve> curves;
  for (const auto& [name, block, linetype] :
       {Line{"binary16", false, 7}, Line{"nvfp4", true, 4}, Line{"e5m2", false, 3},
        Line{"mxfp8_e5m2", true, 3}, Line{"e4m3", false, 1}, Line{"mxfp8_e4m3", true, 1},
        Line{"e2m1", false, 2}, Line{"mxfp4", true, 2}}) {
    curves.push_back(
        {.table = "spread",
         .where = column_is("format", name) + " && " + column_is("scaling", block ? "block" : "tensor"),
         .x = "column('spread_octaves')",
         .y = y,
         .style =
             fmt::format("with linespoints linetype {} pointtype 7{}", linetype, block ? "" : " dashtype 2"),
         .title = titles ? std::string(name) : ""});
  }
  return curves;
}

std::string spread_script() {
  return first_panel() +
         fmt::format(
             "set xrange [0:{}]\nset xtics 1\nset key maxcols 4\n"
             "set xlabel \"spread of the rows' magnitudes, octaves (standard deviation of log₂)\"\n"
             "set ylabel \"relative error of a row, mean\"\nset logscale y\nset yrange [1e-4:2]\n"
             "set format y \"10^{{%T}}\"\n",
             largest_spread) +
         plot(spread_curves("column('row_relative_error')", true)) + panel(1, 2) +
         "set ylabel \"values that became zero, %\"\nunset logscale y\nset yrange [0:104]\n"
         "set format y \"%h\"\n" +
         plot(spread_curves("100 * column('fraction_flushed')", false)) + "unset multiplot\n";
}

std::vector<Curve> block_size_curves() {
  std::vector<Curve> curves;
  int linetype = 0;
  for (const Scheme& scheme : resized_schemes()) {
    ++linetype;
    for (const fp16::ScaleRule rule : block_size_rules) {
      const std::string_view rule_name = fp16::name_of(rule);
      const std::string_view dashes = rule == fp16::ScaleRule::floor ? "" : " dashtype 2";
      curves.push_back(
          {.table = "block_size",
           .where = column_is("format", scheme.name) + " && " + column_is("scale_rule", rule_name),
           .x = "column('block_size_log2')",
           .y = "column('row_relative_error')",
           .style = fmt::format("with linespoints linetype {}{}", linetype, dashes),
           .title = fmt::format("{} {}", scheme.name, rule_name)});
    }
  }
  return curves;
}

std::string block_size_script(std::size_t elements) {
  const double whole = sim::log2_of(static_cast<double>(elements)),
               row = sim::log2_of(static_cast<double>(row_length));
  constexpr double low = 0.06;
  std::vector<Mark> block_sizes{{.x = 5, .label = "MX: 32", .label_height = low}};
  if (elements > row_length) block_sizes.push_back({.x = row, .label = "one row", .label_height = low});
  block_sizes.push_back({.x = whole, .label = "whole tensor", .label_height = low, .side = Mark::Side::left});
  return marks(block_sizes) +
         fmt::format(
             "set key noenhanced width 1 maxcols 3\nset xrange [0:{}]\nset xtics 2\n"
             "set format x \"2^{{%g}}\"\nset xlabel \"values that share a scale\"\n"
             "set ylabel \"relative error of a row, mean\"\nset logscale y\nset format y \"10^{{%T}}\"\n"
             "set yrange [0.01:2]\n",
             whole + 0.2) +
         plot(block_size_curves());
}

}  // namespace

void draw_figures(Run& run, const Options& options, const std::string& setting) {
  run.figure({.name = "values",
              .title = "How the numbers of the formats lie",
              .caption = "Above: in each octave a format has 2^(p-1) numbers, fewer where it is subnormal. "
                         "binary64, with 2^52 an octave from 2^-1022 to 2^1023, is left out. Below: every "
                         "positive number of the small formats, and the scales of a block (e8m0), which go "
                         "on to both sides.",
              .script = first_panel() + octaves_panel() + panel(1, 2) + numbers_panel() + "unset multiplot\n",
              .height = 640});
  run.figure({.name = "spread",
              .title = "One scale for the whole tensor (dashed) and one a block (solid)",
              .caption = setting +
                         " Rows with scales of their own keep their error whatever the others are. With one "
                         "scale for the tensor small rows vanish, the sooner the fewer octaves the format "
                         "has; so do they in nvfp4, whose block scales are e4m3 numbers.",
              .script = spread_script(),
              .height = 640});
  run.figure({.name = "block_size",
              .title = fmt::format("How many values can share a scale, at a spread of {}",
                                   counted(options.spread, "octave")),
              .caption = setting +
                         " An e8m0 scale costs 8 / (block size) bits a value. Under the floor rule (solid) "
                         "the largest value of a block may saturate, under rceil (dashed) none does.",
              .script = block_size_script(options.elements())});
}

}  // namespace experiments::formats
