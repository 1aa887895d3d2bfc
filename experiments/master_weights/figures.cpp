#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "experiments/frame/figure.h"
#include "experiments/master_weights/findings.h"

namespace experiments::master_weights {
namespace {

/// In every figure a storage has the same colour.
std::string_view colour_of(std::size_t storage) {
  constexpr std::array colours{"grey", "black", "vermillion", "orange", "blue", "sky"};
  static_assert(colours.size() == storages.size());
  return colours[storage];
}

std::string rows_of(std::string_view condition, std::size_t storage) {
  return column_is("condition", condition) + " && " + column_is("storage", storages[storage].name);
}

/// Measured shares as points, expected ones as lines.
std::vector<Curve> ratio_curves() {
  constexpr int fewest_updates = 1000;  // a share of fewer is mostly noise
  std::vector<Curve> curves;
  for (std::size_t i = masters; i < storages.size(); ++i) {
    const bool nearest = storages[i].rounding == fp16::Rounding::nearest_even;
    Curve curve{.table = "swallowed_by_ratio",
                .where = rows_of("all", i) + fmt::format(" && column('updates') >= {}", fewest_updates),
                .x = "(column('ratio_from') + column('ratio_to')) / 2",
                .y = "100 * column('fraction_swallowed')",
                .style = fmt::format("with points linecolor rgb {} pointtype {} pointsize {}", colour_of(i),
                                     nearest ? 7 : 9, nearest ? 0.5 : 0.6),
                .title = std::string(storages[i].title)};
    curves.push_back(curve);
    curve.title = {};
    for (const std::string_view law : {"uniform", "logarithmic"}) {
      curve.y = fmt::format("100 * column('fraction_expected_{}')", law);
      curve.style = fmt::format("with lines linewidth 1.2 linecolor rgb {}{}", colour_of(i),
                                law == "uniform" ? " dashtype 3" : "");
      curves.push_back(curve);
    }
  }
  return curves;
}

std::string ratio_script() {
  constexpr int lowest_log2 = 4, highest_log2 = 28;
  std::vector<std::string> tics;
  for (int e = lowest_log2; e <= highest_log2; e += 2) tics.push_back(fmt::format("'2^{{{0}}}' 2**{0}", e));
  return marks(
             {{.x = 0x1p11, .label = "2^{11}", .side = Mark::Side::left}, {.x = 0x1p12, .label = "2^{12}"}}) +
         fmt::format("set logscale x 2\nset xrange [2**{}:2**{}]\nset xtics ({})\n", lowest_log2,
                     highest_log2, fmt::join(tics, ", ")) +
         "set xlabel \"|w| / |update|\"\nset yrange [0:104]\nset ylabel \"swallowed updates, %\"\n" +
         plot(ratio_curves());
}

constexpr int most_columns = 3;

struct PanelGrid {
  int panels;
  int height;  ///< of the figure, in pixels

  int columns() const { return std::min(panels, most_columns); }
  int rows() const { return (panels + most_columns - 1) / most_columns; }

  /// Edges of a panel, row by row from the top.
  std::string margins(int index) const {
    constexpr double left = 0.085, right = 0.97, gap = 0.07;
    constexpr double head = 110, foot = 62, between = 72;  // pixels
    const double width = (right - left - gap * (columns() - 1)) / columns();
    const double tall = (height - head - foot - between * (rows() - 1)) / rows();
    const double x = left + (width + gap) * (index % columns());
    const double top = head + (tall + between) * (index / columns());
    return fmt::format(
        "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n"
        "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n",
        x, x + width, 1 - top / height, 1 - (top + tall) / height);
  }
};

/// Dashes of later curves let the earlier ones be seen under them.
std::string loss_style(std::size_t storage) {
  constexpr std::array dash_types{1, 2, 1, 4, 2, 5};
  static_assert(dash_types.size() == storages.size());
  return fmt::format("with lines linecolor rgb {} linewidth {} dashtype {}", colour_of(storage),
                     storage == reference ? 5 : 1.6, dash_types[storage]);
}

/// Training losses of a condition, means over the seeds.
std::vector<Curve> loss_curves(const ConditionFindings& found) {
  std::vector<Curve> curves;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    curves.push_back({.table = "steps",
                      .where = rows_of(found.condition->name(), i),
                      .x = "column('step')",
                      .y = "column('training_loss')",
                      .style = "smooth unique " + loss_style(i)});
  }
  return curves;
}

/// The title and the key of all panels, in a plot of the whole width: gnuplot gives a key no more columns
/// than its own plot has room for.
std::string loss_key() {
  std::string script =
      "unset label\neval draw_title\nset lmargin at screen 0.085\nset rmargin at screen 0.98\n"
      "set tmargin at screen 0.95\nset bmargin at screen 0.85\nunset border\nunset tics\n"
      "unset xlabel\nunset ylabel\nunset logscale y\nset xrange [0:1]\nset yrange [0:1]\n"
      "set key at screen 0.5, screen 0.935 center top horizontal Left reverse maxcols 6\nplot ";
  for (std::size_t i = 0; i < storages.size(); ++i)
    script +=
        fmt::format("{}-1 {} title {}", i == 0 ? "" : ", ", loss_style(i), gnuplot_string(storages[i].title));
  return script + "\nunset key\nset border 3\nset ytics nomirror out scale 0.5\nset yrange [*:*]\n";
}

/// Steps from one tic to the next on a narrow axis: 1, 2 or 5 times a power of ten, five of them at most.
int steps_between_tics(int steps) {
  for (int unit = 1;; unit *= 10) {
    for (const int interval : {unit, 2 * unit, 5 * unit}) {
      if (5 * interval >= steps) return interval;
    }
  }
}

std::vector<double> mean_losses(const ConditionFindings& found) {
  std::vector<double> losses;
  for (const std::vector<TrainingRun>& runs : found.runs) {
    for (std::size_t period = 0; period < runs.front().periods.size(); ++period) {
      double sum = 0;
      for (const TrainingRun& run : runs) sum += run.periods[period].training_loss;
      losses.push_back(sum / static_cast<double>(runs.size()));
    }
  }
  return losses;
}

Figure loss_figure(const std::vector<ConditionFindings>& findings, const std::string& setting) {
  const auto count = static_cast<int>(findings.size());
  const PanelGrid grid{.panels = count, .height = count > most_columns ? 680 : 400};
  const int steps = findings.front().condition->setup().steps();
  std::string script = "set multiplot\n" + loss_key() +
                       fmt::format("set xrange [0:{}]\nset xtics nomirror out scale 0.5 {}\n", steps,
                                   steps_between_tics(steps));
  for (int i = 0; i < count; ++i) {
    const ConditionFindings& found = findings[static_cast<std::size_t>(i)];
    const bool leftmost = i % grid.columns() == 0, lowest = i + grid.columns() >= count;
    script += fmt::format(
        "unset label\n{}set label {} at graph 0.5, graph 1.06 center noenhanced font ',12'\n"
        "set ylabel '{}'\nset xlabel '{}'\n",
        grid.margins(i), gnuplot_string(found.condition->label()), leftmost ? "training loss" : "",
        lowest ? "step" : "");
    script += log_axis(mean_losses(found)) + plot(loss_curves(found));
  }
  return {.name = "loss",
          .title = "Training with and without FP32 master weights",
          .caption = setting +
                     " Training loss, mean over the steps from one measured step to the next and "
                     "over the seeds. A curve upon the grey one, of training in FP32, is no worse than this.",
          .script = script + "unset multiplot\n",
          .width = 1000,
          .height = grid.height};
}

/// A column over the steps with FP16 weights rounded to nearest, means over the seeds.
std::string steps_plot(const std::vector<ConditionFindings>& findings, std::string_view y, bool titles) {
  std::vector<Curve> curves;
  for (const ConditionFindings& found : findings) {
    curves.push_back({.table = "steps",
                      .where = rows_of(found.condition->name(), fp16_nearest),
                      .x = "column('step')",
                      .y = std::string(y),
                      .style = fmt::format("smooth unique with lines linetype {}", curves.size() + 1),
                      .title = titles ? found.condition->label() : std::string()});
  }
  return plot(curves);
}

Figure steps_figure(const std::vector<ConditionFindings>& findings, const std::string& setting) {
  std::vector<std::string> labels;
  std::vector<double> rates;
  for (const ConditionFindings& found : findings) {
    labels.push_back(found.condition->label());
    for (const Period& period : found.runs[fp16_nearest].front().periods)
      rates.push_back(period.learning_rate);
  }
  const KeyColumn key(labels);
  return {
      .name = "steps",
      .title = "What FP16 weights without masters, rounded to nearest, keep of the updates",
      .caption = setting +
                 " Progress: how far the change of all weights goes along the exact update; 100 % with "
                 "masters. Swallowed: means over the steps from one measured step to the next; all are means "
                 "over the seeds.",
      .script = "set multiplot\nset xlabel \"step\"\n" + panel(0, 3) + key.script() + log_axis(rates) +
                "set ylabel \"learning rate\"\n" +
                steps_plot(findings, "column('learning_rate') > 0 ? column('learning_rate') : NaN", true) +
                panel(1, 3) +
                "unset logscale y\nset ytics 25\nset yrange [0:100]\nset ylabel \"swallowed, %\"\n" +
                steps_plot(findings, "100 * column('fraction_swallowed')", false) + panel(2, 3) +
                "set yrange [0:110]\nset ylabel \"progress, %\"\n" +
                steps_plot(findings, "100 * column('progress')", false) + "unset multiplot\n",
      .width = key.figure_width(),
      .height = 820};
}

}  // namespace

void draw_figures(Run& run, const std::vector<ConditionFindings>& findings, const std::string& setting) {
  run.figure(
      {.name = "swallowed_by_ratio",
       .title = "When an update leaves the weight as it was",
       .caption = setting +
                  " Points: measured, all conditions, bins of at least 1000 updates of normal weights. "
                  "Lines: expected where the weights' significands are uniform in an octave (dotted) and "
                  "where they follow Benford's law (solid). Rounded to nearest, FP16 can lose no update "
                  "above 2^-11 of the weight (left mark) and keep none below 2^-12 (right mark).",
       .script = ratio_script()});
  run.figure(loss_figure(findings, setting));
  run.figure(steps_figure(findings, setting));
}

}  // namespace experiments::master_weights
