#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "experiments/frame/figure.h"
#include "experiments/scale_policy_order/findings.h"
#include "sim/tensor/log2.h"

namespace experiments::scale_policy_order {
namespace {

constexpr int columns = 4;

std::vector<const Recipe*> wrong_recipes() {
  std::vector<const Recipe*> wrong;
  for (const Recipe& recipe : recipes()) {
    if (!recipe.is_right) wrong.push_back(&recipe);
  }
  return wrong;
}

std::string rows_of(const Recipe& recipe, const std::string& optimizer) {
  return column_is("recipe", recipe.name) + " && " + column_is("optimizer", optimizer);
}

/// An axis of octaves that has the factors of the recipe and an octave to either side of 1.
std::string octaves_axis(const Findings& found, const Options& options, const Recipe& recipe) {
  double lowest = -1, highest = 1;
  const auto include = [&](double factor) {
    if (!(factor > 0)) return;
    lowest = std::min(lowest, sim::log2_of(factor));
    highest = std::max(highest, sim::log2_of(factor));
  };
  for (const std::string& optimizer : options.optimizers) {
    for (const StepMeasurement& step : found.of(recipe.name, optimizer).steps) {
      include(step.factor);
      include(step.predicted);
    }
  }
  constexpr int most_tics = 4;
  const double octaves = highest - lowest;
  const int between = octaves <= most_tics       ? 1
                      : octaves <= 2 * most_tics ? 2
                                                 : octaves_between_tics(octaves, most_tics);
  const double room = std::max(0.5, 0.08 * octaves);
  return fmt::format("set yrange [{:.2f}:{:.2f}]\nset ytics {}\n", lowest - room, highest + room, between);
}

/// The place of a panel, counted by rows from the upper left.
std::string place(std::size_t index, std::size_t rows) {
  constexpr double left = 0.075, right = 0.985, top = 0.9, bottom = 0.055, gap_x = 0.05, gap_y = 0.078;
  const auto column = static_cast<double>(index % columns), row = static_cast<double>(index / columns);
  const double width = (right - left - (columns - 1) * gap_x) / columns;
  const double height = (top - bottom - static_cast<double>(rows - 1) * gap_y) / static_cast<double>(rows);
  const double x = left + column * (width + gap_x), y = top - row * (height + gap_y) - height;
  return fmt::format(
      "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n"
      "set bmargin at screen {:.4f}\nset tmargin at screen {:.4f}\n",
      x, x + width, y, y + height);
}

Figure rate_figure(const Findings& found, const Options& options, const std::string& setting) {
  const std::vector<const Recipe*> wrong = wrong_recipes();
  const std::size_t rows = (wrong.size() + columns - 1) / columns;
  std::string script =
      "set multiplot\nset xtics font ',10' autofreq\nset ytics font ',10'\n"
      "octaves(factor) = factor > 0 ? log(factor) / log(2) : NaN\n";
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const Recipe& recipe = *wrong[i];
    const std::uint64_t steps = setting_of(recipe, options.optimizers.front(), options).steps;
    std::vector<Curve> curves;
    for (const std::string& optimizer : options.optimizers)
      curves.push_back({.table = "steps",
                        .where = rows_of(recipe, optimizer),
                        .x = "column('step')",
                        .y = "octaves(column('measured_factor'))",
                        .style = fmt::format("with points linetype {} pointsize 0.35", curves.size() + 1),
                        .title = i == 0 ? optimizer : ""});
    for (std::size_t optimizer = 0; optimizer < options.optimizers.size(); ++optimizer)
      curves.push_back({.table = "steps",
                        .where = rows_of(recipe, options.optimizers[optimizer]),
                        .x = "column('step')",
                        .y = "octaves(column('predicted_factor'))",
                        .style = fmt::format("with lines linetype {} linewidth 1 dashtype 2", optimizer + 1),
                        .title = i == 0 ? "predicted, " + options.optimizers[optimizer] : ""});
    script +=
        place(i, rows) + "unset label\n" + (i == 0 ? "eval draw_title\n" : "") +
        fmt::format("set label {} at graph 0, graph 1.06 left noenhanced font ',11'\n",
                    gnuplot_string(recipe.name)) +
        (i == 0 ? "set label 'log₂ of the factor on the learning rate, over the steps' at screen "
                  "0.018, screen 0.48 center rotate by 90 font ',13'\n"
                  "set label 'step' at screen 0.53, screen 0.012 center font ',13'\n"
                  "set key at screen 0.985, screen 0.992 right top vertical maxrows " +
                      std::to_string(options.optimizers.size() > 3 ? 3 : 2) + " samplen 1.5 font ',11'\n"
                : "") +
        octaves_axis(found, options, recipe) +
        fmt::format("set xrange [0:{}]\nset xtics {}\n", steps, std::max<std::uint64_t>(steps / 4, 1)) +
        plot(curves);
  }
  return {.name = "rate",
          .title = "What the order of calls makes of the learning rate",
          .caption = setting +
                     " Least-squares factor of a recipe's update on the right one's at the same weights "
                     "and batch, along the right one's run with the first seed; steps that this skips and "
                     "factors that are not positive are left out. Dashed: predicted, where a factor follows "
                     "from the calls.",
          .script = script + "unset multiplot\n",
          .width = 1100,
          .height = 190 * static_cast<int>(rows) + 60};
}

/// The recipes of one model, from the top.
struct LossPanel {
  std::string label;
  std::vector<const Recipe*> recipes;
};

/// "NaN: sgd in 5 of 5 runs"; empty where all runs end with a number.
std::string divergence(const Findings& found, const Options& options, const Recipe& recipe) {
  std::vector<std::string> diverged;
  for (const std::string& optimizer : options.optimizers) {
    const Result& result = found.of(recipe.name, optimizer);
    if (result.diverged_runs() > 0)
      diverged.push_back(
          fmt::format("{} in {} of {} runs", optimizer, result.diverged_runs(), result.runs.size()));
  }
  return diverged.empty() ? "" : fmt::format("NaN: {}", fmt::join(diverged, ", "));
}

/// A logarithmic axis with all of the panel's losses and their intervals.
std::string loss_axis(const Findings& found, const Options& options, const LossPanel& panel) {
  double lowest = std::numeric_limits<double>::infinity(), highest = 0;
  for (const Recipe* recipe : panel.recipes) {
    for (const std::string& optimizer : options.optimizers) {
      const Estimate loss = estimate(found.of(recipe->name, optimizer).losses());
      if (!std::isfinite(loss.mean)) continue;
      const double half_width = std::isfinite(loss.half_width) ? loss.half_width : 0;
      lowest = std::min(lowest, std::max(loss.mean - half_width, loss.mean / 2));
      highest = std::max(highest, loss.mean + half_width);
    }
  }
  if (highest == 0) lowest = highest = 1;
  return fmt::format(
      "set logscale x\nset xrange [{}:{}]\nset xtics auto\nset xtics add ('0.2' 0.2, '0.3' 0.3, '0.5' 0.5, "
      "'0.7' 0.7, '2' 2, '3' 3, '4' 4, '5' 5, '6' 6, '7' 7, '8' 8, '9' 9, '20' 20)\nset xlabel {}\n",
      0.93 * lowest, 1.07 * highest, gnuplot_string(panel.label));
}

/// Final losses with their intervals; a word at the right for those that are not finite.
std::string loss_panel(const Findings& found, const Options& options, const LossPanel& panel,
                       bool has_titles) {
  const std::size_t optimizers = options.optimizers.size();
  std::vector<std::string> tics, plots;
  std::string labels;
  for (std::size_t row = 0; row < panel.recipes.size(); ++row) {
    const Recipe& recipe = *panel.recipes[row];
    tics.push_back(fmt::format("{} {}", gnuplot_string(recipe.name), row));
    labels += fmt::format("set label {} at graph 1, first {} right noenhanced front boxed font ',10'\n",
                          gnuplot_string(divergence(found, options, recipe)), row);
    for (std::size_t i = 0; i < optimizers; ++i) {
      const double apart = std::min(0.3, 0.8 / static_cast<double>(optimizers));
      const double y = static_cast<double>(row) +
                       apart * (static_cast<double>(i) - static_cast<double>(optimizers - 1) / 2);
      const std::string title =
          has_titles && row == 0 ? "title " + gnuplot_string(options.optimizers[i]) : "notitle";
      plots.push_back(
          fmt::format("\"recipes.csv\" using (({}) ? column('final_loss_mean') : NaN):({:.2f}):"
                      "(column('final_loss_half_width') > 0 ? column('final_loss_half_width') : 0) with "
                      "xerrorbars linetype {} linewidth 1.5 {}",
                      rows_of(recipe, options.optimizers[i]), y, i + 1, title));
    }
  }
  return labels + loss_axis(found, options, panel) +
         fmt::format("set yrange [{}.6:-0.6]\nset ytics scale 0 noenhanced font ',11' ({})\nplot {}\n",
                     panel.recipes.size() - 1, fmt::join(tics, ", "), fmt::join(plots, ", \\\n  "));
}

Figure loss_figure(const Findings& found, const Options& options, const std::string& setting) {
  LossPanel one{.label = "final test loss of " + options.training.model, .recipes = {}},
      two{.label = "final test loss of " + options.detector.model, .recipes = {}};
  for (const Recipe& recipe : recipes()) (recipe.two_losses ? two : one).recipes.push_back(&recipe);
  constexpr int room = 116;
  const int row_height = std::max(24, 8 * static_cast<int>(options.optimizers.size()));
  const auto rows = static_cast<int>(one.recipes.size() + two.recipes.size());
  const int height = rows * row_height + 2 * room;
  const double part = static_cast<double>(static_cast<int>(two.recipes.size()) * row_height) / height;
  const auto panel = [&](double bottom, double top) {
    return fmt::format("unset label\nset bmargin at screen {:.4f}\nset tmargin at screen {:.4f}\n", bottom,
                       top);
  };
  const double axis = 70.0 / height, head = 0.035 + 46.0 / height;  // the title is at 0.035
  return {.name = "loss",
          .title = "What the order of calls makes of the training",
          .caption = setting + " Means and 95 % t-intervals over the seeds.",
          .script = "set multiplot\nset lmargin at screen 0.29\nset rmargin at screen 0.97\n" +
                    panel(part + axis + 85.0 / height, 1 - head) + "eval draw_title\n" +
                    "set style textbox opaque noborder margins 0.5, 0.1\nset key at screen 0.29, screen " +
                    fmt::format("{:.4f}", 0.965 - 24.0 / height) +
                    " left center horizontal Left reverse maxrows 1 maxcols 9 width 1\n" +
                    loss_panel(found, options, one, true) + panel(axis, part + axis) +
                    loss_panel(found, options, two, false) + "unset multiplot\n",
          .width = 900,
          .height = height};
}

}  // namespace

void draw_figures(Run& run, const Findings& found, const Options& options, const std::string& setting) {
  run.figure(rate_figure(found, options, setting));
  run.figure(loss_figure(found, options, setting));
}

}  // namespace experiments::scale_policy_order
