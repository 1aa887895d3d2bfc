#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "experiments/op_precision/lists.h"

namespace experiments::op_precision {
namespace {

constexpr int width = 1240, row_height = 17, room_above = 84, room_below = 64;
/// Fewer rows leave no room for the key beside them: it goes below the title.
constexpr std::size_t rows_beside_key = 14;

/// What PyTorch's list makes of an operation, as far as colours tell it.
struct Hue {
  std::string_view list;
  std::string_view condition;
  std::string_view color;
};
constexpr std::array hues{
    Hue{"FP16", "strcol('torch_autocast') eq 'FP16'", "blue"},
    Hue{"input", "strcol('torch_autocast') eq 'input'", "green"},
    Hue{"FP32, banned", "strcol('torch_autocast')[1:4] eq 'FP32' || strcol('torch_autocast') eq 'banned'",
        "vermillion"}};

std::size_t measured_count(const std::vector<ListEntry>& lists) {
  return static_cast<std::size_t>(
      std::ranges::count_if(lists, [](const ListEntry& e) { return e.ours != Placement::unmeasured; }));
}

/// Lines between the groups, of which each has the placement beside its first row.
std::string groups(const std::vector<ListEntry>& lists, bool with_names) {
  std::string script;
  for (std::size_t row = 0; row < measured_count(lists); ++row) {
    if (row > 0 && lists[row].ours == lists[row - 1].ours) continue;
    if (row > 0)
      script += fmt::format(
          "set arrow from graph 0, first {0} to graph 1, first {0} nohead linecolor rgb grey linewidth 1\n",
          static_cast<double>(row) - 0.5);
    if (with_names)
      script += fmt::format("set label \"ours: {}\" at graph 1.04, first {} left font ',12'\n",
                            name_of(lists[row].ours), row);
  }
  return script;
}

/// A tic for every operation, with names or without.
std::string operation_tics(const std::vector<ListEntry>& lists, bool with_names) {
  std::vector<std::string> tics;
  for (std::size_t row = 0; row < measured_count(lists); ++row) {
    tics.push_back(
        fmt::format("{} {}", with_names ? gnuplot_string(lists[row].operation().name) : "''", row));
  }
  return fmt::format("set ytics noenhanced font ',11' ({})\n", fmt::join(tics, ", "));
}

/// Panel `index` of three side by side.
std::string side_panel(int index) {
  constexpr std::array<std::array<double, 2>, 3> edges{{{0.205, 0.455}, {0.485, 0.655}, {0.685, 0.855}}};
  const auto [left, right] = edges[static_cast<std::size_t>(index)];
  return fmt::format("unset arrow\n{}set lmargin at screen {}\nset rmargin at screen {}\n",
                     index == 0 ? "" : "unset label\n", left, right);
}

/// The dashed line where the criterion fails.
std::string threshold(double x, std::string label) {
  return marks({{.x = x, .label = std::move(label), .label_height = 1}});
}

constexpr int filled = 7, hollow = 6, cross = 2;

std::string point(int type, std::string_view color) {
  return fmt::format("with points pointtype {} pointsize 0.9 linewidth 1.5 linecolor rgb {}", type, color);
}

/// A point for every operation, coloured by PyTorch's list.
std::vector<Curve> points(std::string_view x, int type, bool with_titles = false) {
  std::vector<Curve> curves;
  for (const Hue& hue : hues) {
    curves.push_back({.table = "lists",
                      .where = fmt::format("({}) && strcol('ours') ne '-'", hue.condition),
                      .x = std::string(x),
                      .y = "column('rank')",
                      .style = point(type, hue.color),
                      .title = with_titles ? std::string(hue.list) : ""});
  }
  return curves;
}

/// An entry of the key alone, its points out of sight.
Curve key_entry(int type, std::string title) {
  return {.table = "lists", .x = "-1", .y = "-1", .style = point(type, "grey"), .title = std::move(title)};
}

std::string error_panel(const Findings& findings, const std::vector<ListEntry>& lists) {
  constexpr double least = 0.1;
  double largest = 100;
  for (const ListEntry& entry : lists) {
    const double error = entry.findings->worst().loss(Reductions::fp16).gradient_error_u;
    if (std::isfinite(error)) largest = std::max(largest, error);
  }
  const auto shown = [=](std::string_view column) {
    return fmt::format("column('{0}') > {1} ? column('{0}') : {1}", column, least);
  };
  std::vector<Curve> curves = points(shown("gradient_error_u"), filled);
  if (findings.reductions == Reductions::fp32) {
    const std::vector<Curve> fp16 = points(shown("gradient_error_fp16_reductions_u"), hollow);
    curves.insert(curves.begin(), fp16.begin(), fp16.end());
  }
  return fmt::format(
             "set logscale x\nset xrange [{}:{}]\nset xtics (\"≤ 0.1\" 0.1, 1, 10, 100, 1000, 10000)\n"
             "set xlabel \"gradient error, u = 2^{{-11}}\"\n",
             least, 2 * largest) +
         threshold(Criterion().largest_gradient_error_u,
                   fmt::format("{:g} u", Criterion().largest_gradient_error_u)) +
         plot(curves);
}

std::string flushed_panel() {
  std::vector<Curve> curves =
      points("column('fraction_flushed') > 0 ? 100 * column('fraction_flushed') : NaN", filled);
  curves.push_back({.table = "lists",
                    .where = "column('fraction_overflow') > 0",
                    .x = "100",
                    .y = "column('rank')",
                    .style = point(cross, "black")});
  return "set logscale x\nset xrange [0.001:100]\nset xtics (\"0.001\" 0.001, \"0.1\" 0.1, 10)\nset xlabel "
         "\"flushed, %\"\n" +
         threshold(100 * Criterion().most_flushed, fmt::format("{:g} %", 100 * Criterion().most_flushed)) +
         plot(curves);
}

/// The key in a plot of the whole width, below the title.
std::string key_above(const Findings& findings, int height) {
  std::vector<std::string> entries;
  for (const Hue& hue : hues)
    entries.push_back(fmt::format("-1 {} title '{}'", point(filled, hue.color), hue.list));
  if (findings.reductions == Reductions::fp32) {
    entries.push_back(fmt::format("-1 {} title 'sums FP32'", point(filled, "grey")));
    entries.push_back(fmt::format("-1 {} title 'sums FP16'", point(hollow, "grey")));
  }
  entries.push_back(fmt::format("-1 {} title 'overflow'", point(cross, "grey")));
  return fmt::format(
      "unset label\nunset arrow\nset lmargin at screen 0.205\nset rmargin at screen 0.98\n"
      "set tmargin at screen 0.99\nset bmargin at screen 0.5\nunset border\nunset tics\nunset xlabel\n"
      "unset logscale x\nset xrange [0:1]\nset yrange [0:1]\n"
      "set label \"PyTorch's list:\" at screen 0.205, screen {0:.4f} left font ',12'\n"
      "set key at screen 0.3, screen {0:.4f} left center horizontal Left reverse noenhanced maxrows 1 "
      "maxcols 6 title \"\"\nplot "
      "{1}\n",
      0.965 - 28.0 / height, fmt::join(entries, ", "));
}

/// With the key of all panels beside it, where there is room for it.
std::string headroom_panel(const Findings& findings, const std::vector<ListEntry>& lists) {
  const bool has_key = measured_count(lists) >= rows_beside_key;
  std::vector<Curve> curves = points("column('headroom_octaves')", filled, has_key);
  if (has_key && findings.reductions == Reductions::fp32) {
    curves.push_back(key_entry(filled, "sums FP32"));
    curves.push_back(key_entry(hollow, "sums FP16"));
  }
  if (has_key) curves.push_back(key_entry(cross, "overflow"));
  return "unset logscale x\nset xrange [0:20]\nset xtics 4\nset xlabel \"headroom, octaves\"\n"
         "set key at graph 1.04, graph 0.5 left top vertical Left reverse noenhanced maxcols 1 samplen 1 "
         "title \"PyTorch's list\" left\n" +
         std::string(has_key ? "" : "unset key\n") + groups(lists, true) + plot(curves);
}

}  // namespace

void draw_figures(Run& run, const Findings& findings, const std::vector<ListEntry>& lists,
                  const std::string& setting) {
  const std::size_t rows = measured_count(lists);
  const int above = room_above + (rows < rows_beside_key ? 40 : 0);
  const int height = above + room_below + row_height * static_cast<int>(rows);
  const std::string separators = groups(lists, false);
  run.figure(
      {.name = "operations",
       .title = "Which operations need FP32",
       .caption = fmt::format(
           "{} {} Left: filled with sums in {}, hollow with sums in FP16. Middle: the worst tensor, nothing "
           "where no value was flushed; a cross for overflow. Right: octaves by which the operands may grow "
           "before the criterion fails or they leave FP16. Dashed: the thresholds.",
           criterion_sentence(), setting, findings.reductions == Reductions::fp32 ? "FP32" : "FP16"),
       .script = fmt::format("set multiplot\nset tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
                             "set yrange [{}:-0.5]\nunset key\n",
                             1 - static_cast<double>(above) / height,
                             static_cast<double>(room_below) / height, static_cast<double>(rows) - 0.5) +
                 operation_tics(lists, true) + side_panel(0) + separators + error_panel(findings, lists) +
                 operation_tics(lists, false) + side_panel(1) + separators + flushed_panel() + side_panel(2) +
                 headroom_panel(findings, lists) +
                 (rows < rows_beside_key ? key_above(findings, height) : "") + "unset multiplot\n",
       .width = width,
       .height = height});
}

}  // namespace experiments::op_precision
