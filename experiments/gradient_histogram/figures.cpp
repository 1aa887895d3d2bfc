#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "experiments/frame/text_table.h"
#include "experiments/gradient_histogram/findings.h"
#include "experiments/gradient_histogram/panels.h"
#include "experiments/training/gradient_sites.h"
#include "fp16/names.h"

namespace experiments::gradient_histogram {
namespace {

using fp16::ExponentHistogram;
using sim::GradientSite;

/// Per cent; at least a thousandth, so that an empty histogram has an axis.
double tallest_bar(const Pooled& pooled) {
  return std::max(pooled.peak_percent(), 0.001);
}

/// The lowest exponent shown; less than one value in a thousand lies below it.
double left_edge(const Pooled& all) {
  const double total = static_cast<double>(all.exponents.total());
  int e = ExponentHistogram::min_exponent;
  for (double share = 0; e < -34; ++e) {
    share += static_cast<double>(all.exponents.octave(e).total) / total;
    if (share > 0.001) break;
  }
  return e - 1;
}

/// Zeros at the left, non-zero values by exponent over the zones of FP16 at the right.
std::string histogram_panels(std::string_view table, const Pooled& row, double lowest,
                             std::string_view x_label) {
  const std::string of_row = column_is("tensor", row.name);
  return zeros_panel({.table = std::string(table),
                      .where = of_row + " && " + column_is("exponent_log2", "zero"),
                      .percent = 100 * row.fraction_zero(),
                      .title = row.name}) +
         exponents_axes(lowest, fp16_overflow_log2, 1.45 * tallest_bar(row), x_label) + fp16_zones(lowest) +
         fp16_edges() +
         plot({{.table = std::string(table),
                .where = of_row,
                .x = "column('exponent_log2') + 0.5",
                .y = "column('share_percent')",
                .style = "with boxes linecolor rgb blue"}});
}

/// Two histograms, one above the other.
std::string histogram_script(std::string_view table, const Pooled& above, const Pooled& below, double lowest,
                             std::string_view x_label) {
  std::string script = "set multiplot\nset boxwidth 0.9\nunset key\n";
  int index = 0;
  for (const Pooled* row : {&above, &below})
    script += panel(index++, 2) + histogram_panels(table, *row, lowest, x_label);
  return script + "unset multiplot\n";
}

/// A ridge for each moment, the first at the top, each in front of the one before.
std::string ridges_panel(const std::vector<Moment>& moments, Pooled Moment::*quantity, double lowest) {
  double tallest = 0;
  for (const Moment& moment : moments) tallest = std::max(tallest, tallest_bar(moment.*quantity));
  constexpr double room_for_zones = 0.12;  // their names, of the plot's height
  const double gap = 0.55 * tallest;
  const std::string& name = (moments.front().*quantity).name;
  std::string tics;
  std::vector<Curve> curves;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const double base = gap * static_cast<double>(moments.size() - 1 - i);
    tics += fmt::format("{}\"step {}: {:.3g} %% exact 0\" {}", i == 0 ? "" : ", ", moments[i].step,
                        100 * (moments[i].*quantity).fraction_zero(), base);
    const auto curve = [&](std::string style) {
      curves.push_back(
          {.table = "over_training",
           .where = fmt::format("column('step') == {} && {}", moments[i].step, column_is("quantity", name)),
           .x = "column('exponent_log2') + 0.5",
           .y = fmt::format("{} + column('share_percent')", base),
           .style = std::move(style)});
    };
    curve(fmt::format("with filledcurves y1={} linecolor rgb '#B5D8EC' fillstyle solid 1", base));
    curve("with lines linecolor rgb blue linewidth 1");
  }
  return fmt::format(
             "unset key\nset lmargin at screen 0.26\nset grid xtics noytics\nset title \"{}\" offset 0,1.2\n"
             "set yrange [0:{}]\nset ytics ({})\n",
             name, (gap * static_cast<double>(moments.size() - 1) + tallest) / (1 - room_for_zones), tics) +
         fp16_zones(lowest) + plot(curves);
}

Figure ridges_figure(const Findings& found, double lowest, std::string_view model,
                     const std::string& setting) {
  return {.name = "over_training",
          .title = fmt::format("Gradients of {} over training", model),
          .caption = fmt::format("{} One batch at each moment; ridges show the share of all values by "
                                 "exponent, the labels the exact "
                                 "zeros.",
                                 setting),
          .script = fmt::format("set multiplot\nset xrange [{}:16]\nset xtics 4\nset xlabel \"{}\"\n", lowest,
                                exponent_label) +
                    panel(0, 2) + ridges_panel(found.moments, &Moment::activation_gradients, lowest) +
                    panel(1, 2) + ridges_panel(found.moments, &Moment::weight_gradients, lowest) +
                    "unset multiplot\n",
          .height = 860};
}

std::string layer_panel(const std::vector<PooledSite>& sites, double lowest) {
  double tallest = 0;
  std::vector<Curve> curves;
  for (const PooledSite& site : sites) {
    tallest = std::max(tallest, tallest_bar(site));
    curves.push_back({.table = "histogram",
                      .where = column_is("tensor", site.name),
                      .x = "column('exponent_log2') + 0.5",
                      .y = "column('share_percent')",
                      .style = fmt::format("with linespoints linetype {}", curves.size() + 1),
                      .title = site.name});
  }
  return fp16_zones(lowest) + fp16_edges() + fmt::format("set yrange [0:{}]\n", 1.6 * tallest) + plot(curves);
}

void draw_curves(Figure& figure, const std::vector<PooledSite>& activations,
                 const std::vector<PooledSite>& weights, const KeyColumn& key, double lowest) {
  figure.caption += " Above the gradients of each layer's output, below those of its weights.";
  figure.script = fmt::format(
                      "set multiplot\nset xrange [{}:16]\nset xtics 4\nset xlabel \"{}\"\n"
                      "set ylabel \"share of the tensor's values, %\"\n",
                      lowest, exponent_label) +
                  panel(0, 2) + key.script() + layer_panel(activations, lowest) + panel(1, 2) + key.script() +
                  layer_panel(weights, lowest) + "unset multiplot\n";
  figure.width = key.figure_width();
  figure.height = 640;
}

void draw_map(Figure& figure, const std::vector<std::string>& tensors, double lowest) {
  const HeatMapAxes axes{
      .tensors = tensors,
      .lowest = lowest,
      .highest = 16,
      .x_label = std::string(exponent_label),
      .color_label = "share of values, %",
      .x_marks = marks({{.x = -25, .label = "zero in FP16", .label_height = 1, .side = Mark::Side::left},
                        {.x = -14, .label = "subnormal", .label_height = 1, .side = Mark::Side::left}})};
  figure.caption +=
      " From the top the gradients of the layers' outputs, then those of their weights, each in the order of "
      "computation. Lines: 2^-25, up to which FP16 rounds to zero, and 2^-14, from which it is normal.";
  figure.script = heat_maps({{.table = "histogram",
                              .title = "",
                              .x = "column('exponent_log2') + 0.5",
                              .percent = "column('share_percent')"}},
                            axes);
  figure.width = heat_map_width(axes, 1);
  figure.height = heat_map_height(axes);
}

Figure layer_figure(const std::vector<PooledSite>& sites, double lowest, std::string_view model,
                    const std::string& setting) {
  Figure figure{.name = "layers",
                .title = fmt::format("Gradients of {}, tensor by tensor", model),
                .caption = setting,
                .script = {}};
  const std::vector<PooledSite> activations = drawn_sites(sites, GradientSite::Kind::activation),
                                weights = drawn_sites(sites, GradientSite::Kind::weight),
                                drawn = drawn_sites(sites);
  const std::vector<std::string> tensors = names::names_of(std::span(drawn));
  if (activations.size() <= most_curves && weights.size() <= most_curves) {
    draw_curves(figure, activations, weights, KeyColumn(tensors), lowest);
  } else {
    draw_map(figure, tensors, lowest);
  }
  return figure;
}

}  // namespace

void draw_figures(Run& run, const Findings& found, std::string_view model, const std::string& setting) {
  const double lowest = left_edge(found.all_gradients);
  run.figure(
      {.name = "gradient_histogram",
       .title = fmt::format("Gradients of {} by magnitude", model),
       .caption = fmt::format("{} {} of all values are exact zeros; of the others {} round to zero in FP16. "
                              "FP16's range reaches to 2^16: all of it right of the bars stays unused.",
                              setting, percent(found.all_gradients.fraction_zero()),
                              percent(found.all_gradients.fraction_flushed(0))),
       .script = histogram_script("histogram", found.activation_gradients, found.weight_gradients, lowest,
                                  exponent_label),
       .height = 640});
  run.figure(layer_figure(found.sites, lowest, model, setting));
  run.figure(
      {.name = "weights",
       .title = fmt::format("Weights of {} and their updates by magnitude", model),
       .caption = fmt::format(
           "{} An update that FP16 weights would keep is larger than 2^-12 to 2^-11 of its weight; the "
           "experiment on master weights counts them.",
           setting),
       .script = histogram_script("weights", found.weights, found.updates, left_edge(found.updates),
                                  "binary exponent, floor(log₂ |x|)"),
       .height = 640});
  if (found.moments.size() > 1) run.figure(ridges_figure(found, lowest, model, setting));
}

}  // namespace experiments::gradient_histogram
