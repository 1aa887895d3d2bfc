#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "experiments/frame/curve_table.h"
#include "experiments/training/comparison.h"

namespace experiments {
namespace {

/// There are seven colours, the reference's black among them: of more groups both ends of the table are
/// drawn.
constexpr std::size_t first_curves = 4, last_curves = most_curves - first_curves;

bool is_drawn(const Comparison& comparison, std::size_t group) {
  return group < first_curves || group + last_curves >= comparison.groups().size();
}

std::string label_of(const SeedGroup& group) {
  return group.diverged_runs() == 0 ? group.strategy()
                                    : fmt::format("{} ({})", group.strategy(), group.divergence());
}

/// What the figure shows of a run's steps.
struct StepCurves {
  std::vector<Point> loss;
  std::vector<Point> scale_log2;
  std::vector<Point> skipped;  ///< the scales of skipped steps
};

/// From the steps.csv of the group's first seed; its cells hold no commas.
StepCurves first_steps_of(const SeedGroup& group) {
  std::ifstream file(group.results.front().file.parent_path() / "steps.csv");
  std::string line;
  const auto cells = [&] {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    return cells;
  };
  std::getline(file, line);
  const std::vector<std::string> columns = cells();
  const auto place_of = [&](std::string_view column) {
    return static_cast<std::size_t>(std::ranges::find(columns, column) - columns.begin());
  };
  const std::size_t step = place_of("step"), loss = place_of("loss"), scale = place_of("scale_log2"),
                    decision = place_of("decision");
  StepCurves curves;
  while (std::getline(file, line)) {
    const std::vector<std::string> row = cells();
    const auto number = [&](std::size_t place) { return std::strtod(row.at(place).c_str(), nullptr); };
    curves.loss.push_back({number(step), number(loss)});
    curves.scale_log2.push_back({number(step), number(scale)});
    if (row.at(decision) == "skip") curves.skipped.push_back(curves.scale_log2.back());
  }
  return curves;
}

KeyColumn key_of(const Comparison& comparison) {
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < comparison.groups().size(); ++i) {
    if (is_drawn(comparison, i)) titles.push_back(label_of(comparison.groups()[i]));
  }
  return KeyColumn(titles);
}

/// Curves of the panels, from the top; the reference has a loss alone.
struct LossPanels {
  std::vector<Curve> losses;
  std::vector<Curve> excesses;  ///< over the reference
  std::vector<Curve> scales;

  int count() const { return excesses.empty() ? 2 : 3; }
};

LossPanels loss_panels(const Comparison& comparison, CurveTable& table) {
  LossPanels panels;
  std::vector<Curve> skips;
  std::vector<Point> reference;
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < comparison.groups().size(); ++i) {
    if (!is_drawn(comparison, i)) continue;
    const SeedGroup& group = comparison.groups()[i];
    const StepCurves steps = first_steps_of(group);
    const bool is_reference = comparison.is_reference(group);
    const std::string line = is_reference ? "linecolor rgb black linewidth 2.5" : line_style(drawn++);
    const std::string& name = group.strategy();
    panels.losses.push_back(table.add("loss of " + name, steps.loss, "with lines " + line, label_of(group)));
    if (is_reference) reference = steps.loss;
    if (!is_reference && comparison.has_reference())
      panels.excesses.push_back(table.add("loss over fp32's, %: " + name,
                                          excess_percent(steps.loss, reference), "with lines " + line));
    panels.scales.push_back(table.add("log2 S of " + name, steps.scale_log2, "with steps " + line));
    if (steps.skipped.empty()) continue;
    skips.push_back(table.add("skipped steps of " + name, steps.skipped,
                              "with points pointtype 2 pointsize 0.7 linewidth 1.3 linecolor rgb black",
                              skips.empty() ? "skipped step" : ""));
  }
  panels.scales.insert(panels.scales.end(), skips.begin(), skips.end());
  return panels;
}

std::string loss_script(const LossPanels& panels, const KeyColumn& key) {
  const int count = panels.count();
  std::string script = "set multiplot\nset xlabel \"step\"\n" + panel(0, count) + key.script() +
                       "set offsets 0, 0, 0, 0\nset ylabel \"loss of the step's batch\"\n" +
                       plot(panels.losses);
  if (!panels.excesses.empty())
    script += panel(1, count) + key.script() + "set ylabel \"loss over fp32's, %\"\n" + plot(panels.excesses);
  return script + panel(count - 1, count) + key.script() +
         "set offsets 0, 0, 1, 1\nset ylabel \"log₂ of the loss scale S\"\n" + plot(panels.scales) +
         "unset multiplot\n";
}

/// Margins of the comparison's figure, in pixels: what the labels at the left take, and room for the texts
/// above and below the plot.
constexpr int dots_width = 600;

int tic_labels_width(const Comparison& comparison) {
  std::vector<std::string> labels;
  for (const SeedGroup& group : comparison.groups()) labels.push_back(label_of(group));
  return text_width(labels) + 45;
}

int comparison_width(const Comparison& comparison) {
  return tic_labels_width(comparison) + dots_width;
}

/// One dot and interval a row; of the reference there is no difference to draw, and of a group with diverged
/// runs no mean.
std::string comparison_script(const Comparison& comparison) {
  const bool against = comparison.has_reference(), is_classifier = comparison.is_classifier();
  const std::size_t first = against ? 1 : 0;
  std::vector<std::string> tics, drawn;
  for (std::size_t i = first; i < comparison.groups().size(); ++i) {
    const SeedGroup& group = comparison.groups()[i];
    tics.push_back(fmt::format("{} -{}", gnuplot_string(label_of(group)), i + 1));
    if (group.diverged_runs() == 0) drawn.push_back(fmt::format("column('rank') == {}", i + 1));
  }
  const std::string_view unit = !is_classifier ? "" : against ? ", percentage points" : ", %";
  const std::string_view bounds = against ? "difference" : "interval";
  const int factor = is_classifier ? 100 : 1;
  const bool has_intervals = comparison.seeds() > 1;
  std::string script = fmt::format(
      "set lmargin at screen {:.4f}\nset xlabel '{}test {}{}'\nset ytics noenhanced ({})\nset yrange "
      "[{}.5:{}.5]\n",
      static_cast<double>(tic_labels_width(comparison)) / comparison_width(comparison),
      against ? "difference to fp32 in " : "", is_classifier ? "accuracy" : "loss", unit,
      fmt::join(tics, ", "), -static_cast<int>(comparison.groups().size()), -static_cast<int>(first));
  if (drawn.empty()) {
    script += "set xrange [-1:1]\n";
    drawn.push_back("0");
  }
  if (against)
    script += "set arrow from first 0, graph 0 to first 0, graph 1 nohead linecolor rgb grey dashtype 2\n";
  return script +
         plot({{.table = "comparison",
                .where = fmt::format("{} && {} && ({})", column_is("model", comparison.model()),
                                     column_is("quantity", comparison.quality()), fmt::join(drawn, " || ")),
                .x = fmt::format("{}*column('{}')", factor, against ? "difference" : "mean"),
                .y = has_intervals
                         ? fmt::format("-column('rank')):({0}*column('{1}_lower')):({0}*column('{1}_upper')",
                                       factor, bounds)
                         : "-column('rank')",
                .style = fmt::format("with {} linetype 1 linewidth 2 pointsize 1.1",
                                     has_intervals ? "xerrorbars" : "points")}});
}

}  // namespace

Figure loss_figure(RunRecord& record, const Comparison& comparison, const std::string& name) {
  const bool all = comparison.groups().size() <= first_curves + last_curves;
  const std::string which =
      all ? "" : fmt::format(", of the first {} and the last {} in the table", first_curves, last_curves);
  CurveTable table(record, name);
  const LossPanels panels = loss_panels(comparison, table);
  const KeyColumn key = key_of(comparison);
  return {.name = name,
          .title = fmt::format("Training {}", comparison.setup().model_name()),
          .caption = fmt::format(
              "{} Drawn is seed {}{}.{}", comparison.setting(), comparison.first_seed(), which,
              panels.excesses.empty()
                  ? ""
                  : fmt::format(" In the middle the difference to FP32 on the same batches, of "
                                "FP32's loss{}.",
                                stretch_text(static_cast<std::size_t>(comparison.setup().steps())))),
          .script = loss_script(panels, key),
          .width = key.figure_width(),
          .height = 360 * panels.count()};
}

Figure comparison_figure(const Comparison& comparison) {
  return {.name = "comparison",
          .title = fmt::format("{} under each policy and scaler", comparison.setup().model_name()),
          .caption = comparison.setting(),
          .script = comparison_script(comparison),
          .width = comparison_width(comparison),
          .height = 150 + 30 * static_cast<int>(comparison.groups().size())};
}

}  // namespace experiments
