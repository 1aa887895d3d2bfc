#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/gpu/gpu_throughput/record.h"

namespace experiments::gpu_throughput {
namespace {

/// A line of the figure: a row of the table, at every size.
struct Line {
  std::string row;
  std::string limit;
  std::optional<double> target;
  std::string rate;  ///< of the largest size
};

struct Panel {
  Unit unit;
  std::vector<Line> lines;
  std::vector<std::string> sizes;
};

Panel panel_of(const std::vector<Judgement>& judgements, Unit unit) {
  Panel panel{.unit = unit, .lines = {}, .sizes = {}};
  for (const Judgement& judgement : judgements) {
    if (judgement.row->unit != unit || judgement.ratio == 0) continue;
    const Row& row = *judgement.row;
    if (std::ranges::find(panel.sizes, row.group) == panel.sizes.end()) panel.sizes.push_back(row.group);
    auto line = std::ranges::find_if(panel.lines, [&](const Line& each) {
      return each.row == row.name && each.limit == judgement.peer_name;
    });
    if (line == panel.lines.end())
      line =
          panel.lines.insert(line, {.row = row.name, .limit = judgement.peer_name, .target = {}, .rate = {}});
    if (judgement.target) line->target = judgement.target;
    line->rate = rate_text(row.rate(), unit);
  }
  return panel;
}

/// Pixels.
constexpr int width = 900, line_height = 22, title_room = 30, over_plot = 62, under_plot = 76,
              rate_room = 130;

int height_of(const Panel& panel) {
  return over_plot + under_plot + line_height * static_cast<int>(panel.lines.size());
}

/// Without the limit that the axis names.
std::string label_of(const Line& line) {
  return line.limit == "copy" || line.limit.starts_with("cublas") ? line.row : line.row + " / " + line.limit;
}

std::vector<std::string> labels_of(const std::vector<Panel>& panels) {
  std::vector<std::string> labels;
  for (const Panel& panel : panels) std::ranges::transform(panel.lines, std::back_inserter(labels), label_of);
  return labels;
}

/// The points of a size, a line each; above one another where there are several sizes.
std::string points(const Panel& panel, std::size_t size) {
  const std::string& name = panel.sizes[size];
  const double shift = 0.2 * (static_cast<double>(size) - 0.5 * static_cast<double>(panel.sizes.size() - 1));
  std::string text;
  for (std::size_t i = 0; i < panel.lines.size(); ++i) {
    const Line& line = panel.lines[i];
    text += fmt::format(
        "{} \"timing.csv\" using (strcol('row') eq {} && strcol('limit') eq {} && strcol('size') eq {} ? "
        "100 * column('ratio') : NaN):({} + {}):(100 * column('ratio_lowest')):(100 * "
        "column('ratio_highest')) with xerrorbars linetype {} {}",
        size + i == 0 ? "plot" : ",", gnuplot_string(line.row), gnuplot_string(line.limit),
        gnuplot_string(name), i + 1, shift, size + 1,
        i == 0 && !name.empty() ? fmt::format("title \"m = n = k = {}\"", name) : "notitle");
  }
  return text;
}

/// The names at the left, the rates at the right, and the targets.
std::string lines_script(const Panel& panel) {
  std::string names, rates, targets;
  for (std::size_t i = 0; i < panel.lines.size(); ++i) {
    const Line& line = panel.lines[i];
    const std::string separator = i == 0 ? "" : ", ";
    names += fmt::format("{}{} {}", separator, gnuplot_string(label_of(line)), i + 1);
    rates += fmt::format("{}{} {}", separator, gnuplot_string(line.rate), i + 1);
    if (line.target)
      targets += fmt::format(
          "set arrow from {0}, {1} - 0.4 to {0}, {1} + 0.4 nohead front linecolor rgb black linewidth 2\n",
          100 * *line.target, i + 1);
  }
  return fmt::format(
      "unset arrow\nset yrange [{0}.5:0.5]\nset y2range [{0}.5:0.5]\nset ytics noenhanced ({1})\n"
      "set y2tics noenhanced ({2})\n{3}",
      panel.lines.size(), names, rates, targets);
}

/// Between two heights of the figure, as fractions of it.
std::string panel_script(const Panel& panel, double top, double bottom) {
  std::string script =
      lines_script(panel) +
      fmt::format("set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\nset xlabel {}\n", top, bottom,
                  gnuplot_string(panel.unit == Unit::bytes
                                     ? "bytes a second, % of the copy's or of those named"
                                     : "operations a second, % of cuBLAS's in the same formats"));
  for (std::size_t size = 0; size < panel.sizes.size(); ++size) script += points(panel, size);
  return script + '\n';
}

std::string script_of(const std::vector<Panel>& panels, double height) {
  const double left = (text_width(labels_of(panels)) + 24.0) / width;
  std::string script = fmt::format(
      "set multiplot\nset lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset logscale x\n"
      "set xtics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)\nset xrange [*:*]\n",
      left, 1 - static_cast<double>(rate_room) / width);
  double above = title_room;
  for (const Panel& panel : panels) {
    const double below = above + height_of(panel);
    script += panel_script(panel, 1 - (above + over_plot) / height, 1 - (below - under_plot) / height);
    above = below;
  }
  return script + "unset multiplot\n";
}

}  // namespace

void draw_figure(Run& run, const std::vector<Judgement>& judgements, const std::string& setting) {
  std::vector<Panel> panels{panel_of(judgements, Unit::bytes), panel_of(judgements, Unit::flop)};
  std::erase_if(panels, [](const Panel& panel) { return panel.lines.empty(); });
  if (panels.empty()) return;
  int height = title_room;
  for (const Panel& panel : panels) height += height_of(panel);
  run.figure({.name = "timing",
              .title = "Rates against a copy and cuBLAS of the same run",
              .caption = setting +
                         " Points: medians, bars from the slowest to the fastest repeat. Black strokes: "
                         "targets. At the right the rate, of matrix products that of the largest size.",
              .script = script_of(panels, height),
              .width = width,
              .height = height});
}

}  // namespace experiments::gpu_throughput
