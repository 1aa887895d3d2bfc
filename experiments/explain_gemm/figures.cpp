#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/explain_gemm/census.h"
#include "experiments/explain_gemm/findings.h"

namespace experiments::explain_gemm {
namespace {

constexpr int map_width = 900, error_width = 750;

constexpr std::string_view palette =
    "set palette defined (0 '#deebf7', 0.5 '#4292c6', 1 '#08306b')\nunset key\nunset grid\n";

std::string accumulator_tics() {
  std::string tics = "set ytics (";
  for (std::size_t i = 0; i < accumulators().size(); ++i)
    tics += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_string(accumulators()[i].name), i);
  return tics + ") noenhanced\n";
}

/// Pixels between the names at the left and the scale of colours at the right.
std::string side_margins(int left, int width) {
  constexpr int scale_of_colours = 130;
  return fmt::format("set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n",
                     static_cast<double>(left) / width, 1 - static_cast<double>(scale_of_colours) / width);
}

int names_width() {
  std::vector<std::string> names;
  for (const Accumulator& accumulator : accumulators()) names.emplace_back(accumulator.name);
  return text_width(names) + 20;
}

std::string setting(const Problem& problem) {
  return fmt::format("{}{} x {} outputs in {}, k = {}, alpha = {}, beta = {}",
                     problem.triples == 1 ? "" : fmt::format("{} triples of ", problem.triples),
                     problem.rows_each(), problem.columns, short_name(problem.d.format), problem.depth,
                     problem.alpha, problem.beta);
}

std::size_t most_slices(const Explanation& explanation) {
  std::size_t most = 1;
  for (const Tried& tried : explanation.tried) most = std::max(most, tried.hypothesis.slices);
  return most;
}

Figure map_figure(const Findings& found) {
  const std::size_t count = accumulators().size();
  constexpr std::size_t most_numbers = 16;  // with room between them
  const std::size_t slices = most_slices(found.explanation);
  const std::size_t slice_tics = slices <= most_numbers ? 1 : slices <= 2 * most_numbers ? 2 : 8;
  const double least = std::min(10.0, 100.0 / static_cast<double>(found.problem.outputs()));
  return {.name = "map",
          .title = "What each way of adding up leaves unexplained",
          .caption = fmt::format(
              "Share of the outputs whose bits differ, of the best way to cut, reduce and finish for each "
              "accumulator and number of slices of k. Hypotheses that a sample refutes are judged by it. {}.",
              setting(found.problem)),
          .script =
              accumulator_tics() +
              fmt::format("set yrange [{}:-0.5]\nset xrange [0.5:{}.5]\nset xtics {}\n",
                          static_cast<double>(count) - 0.5, slices, slice_tics) +
              fmt::format(
                  "set xlabel 'slices of k'\nset cblabel 'outputs unexplained, %' offset 1\nset logscale cb\n"
                  "set cbrange [{}:100]\nset format cb '%g'\n{}{}set key on\n",
                  least, side_margins(names_width(), map_width), palette) +
              "plot 'map.csv' using 'slices':'accumulator_index':(0.48):(0.48):"
              "(column('fraction_unexplained') > 0 ? 100 * column('fraction_unexplained') : NaN) "
              "with boxxyerror fillstyle solid noborder linecolor palette notitle, "
              "'map.csv' using 'slices':(column('fraction_unexplained') == 0 ? column('accumulator_index') : "
              "NaN) with points pointtype 2 pointsize 1.2 linewidth 3 linecolor rgb vermillion "
              "title 'every bit reproduced'\n",
          .width = map_width,
          .height = static_cast<int>(120 + 24 * count)};
}

// More are drawn small, so that what lies under them is seen.
constexpr std::size_t most_large_marks = 200;

/// Outputs of one kind, which stand first in the table, where they can be told from rounding.
std::string marked(const Findings& found, Kind kind, std::string_view color, std::string_view title) {
  const std::size_t count = found.classification.count(kind);
  if (count == 0) return {};
  const bool are_large = count <= most_large_marks;
  const std::string style =
      fmt::format("with points linecolor rgb {} {}", color,
                  are_large ? "pointtype 2 linewidth 2 pointsize " : "pointtype 7 pointsize ");
  return fmt::format(
      ", 'outputs.csv' using ({} ? column('column') : NaN):'row' {}{} notitle, keyentry {}1 title '{}'",
      column_is("kind", name_of(kind)), style, are_large ? "1.2" : "0.2", style, title);
}

Figure error_figure(const Findings& found) {
  const Problem& problem = found.problem;
  return {
      .name = "errors",
      .title = "Where D differs from the best hypothesis",
      .caption = fmt::format(
          "Share of the outputs in each part of D that {}; marks: up to 10,000 outputs that rounding does "
          "not explain. {}.",
          found.explanation.has_best() ? found.explanation.best().hypothesis.text() + " does not reproduce"
                                       : "no hypothesis reproduces",
          setting(problem)),
      .script =
          fmt::format("set xlabel 'column of D'\nset ylabel 'row of D'\nset xrange [-0.5:{}.5]\n"
                      "set yrange [{}.5:-0.5]\nset cblabel 'outputs unexplained, %' offset 2\n"
                      "set cbrange [0:*]\nset format cb '%g'\n{}{}set key on\n"
                      "plot 'error_map.csv' using "
                      "(column('first_column') + (column('columns') - 1) / 2.0):"
                      "(column('first_row') + (column('rows') - 1) / 2.0):"
                      "(column('columns') / 2.0):(column('rows') / 2.0):"
                      "(100 * column('fraction_unexplained')) "
                      "with boxxyerror fillstyle solid noborder linecolor palette notitle",
                      problem.columns - 1, problem.rows_each() - 1, side_margins(90, error_width), palette) +
          marked(found, Kind::overflow, "purple", "overflow") +
          marked(found, Kind::real_bug, "vermillion", "real bug") + "\n",
      .width = error_width,
      .height = 600};
}

}  // namespace

void draw_figures(Run& run, const Findings& found) {
  run.figure(map_figure(found));
  if (!found.classification.differences.empty()) run.figure(error_figure(found));
}

void draw_census_figure(Run& run, const Census& census) {
  if (census.results.empty()) return;
  std::string plot;
  for (const auto& [verdict, colour] :
       {std::pair("explained", "#009e73"), std::pair("ambiguous", "#56b4e9"),
        std::pair("undetermined", "#f0e442"), std::pair("unexplained", "#d55e00"),
        std::pair("not searched", "#999999")})
    plot += fmt::format(
        "{}'results.csv' using 'result':({} ? column('ways') : NaN) with boxes fillstyle solid noborder "
        "linecolor rgb '{}' title '{}'",
        plot.empty() ? "plot " : ", ", column_is("verdict", verdict), colour, verdict);
  run.figure(
      {.name = "census",
       .title = "How many ways of asking cuBLAS make the same D",
       .caption = fmt::format(
           "Each box is one D, bit for bit, of {} in all, in the order of their first being made. cuBLAS {} "
           "on {}.",
           census.results.size(), cublas_version_text(census.cublas_version), census.gpu.name),
       .script = fmt::format("set xlabel 'D'\nset ylabel 'ways'\nset logscale y\nset yrange [0.5:*]\n"
                             "set xrange [-0.7:{}.7]\nset boxwidth 0.8\n{}\n",
                             census.results.size() - 1, plot),
       .width = 800,
       .height = 420});
}

}  // namespace experiments::explain_gemm
