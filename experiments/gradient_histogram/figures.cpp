#include "experiments/gradient_histogram/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "experiments/common/gradient_sites.h"
#include "experiments/common/text_table.h"
#include "sim/registry.h"

namespace experiments::gradient_histogram {
namespace {

using sim::ExponentHistogram;
using sim::GradientSite;

constexpr std::string_view exponent_label = "binary exponent of |gradient|, floor(log_2 |g|)";

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

std::string fp16_zones(double lowest) {
  return zones({{lowest, -25, "zero in FP16", "vermillion"},
                {-25, -14, "subnormal", "orange"},
                {-14, 16, "FP16 normal range", "green"}}) +
         "set offsets 0, 0, 0, 0\n" +
         marks({{.x = -24, .label = "2^{-24}: smallest subnormal", .label_height = 0.86},
                {.x = -25, .label = "2^{-25}: nearest-even zero", .label_height = 0.77, .label_x = -24}});
}

/// The exact zeros, as one bar on an axis of their own.
std::string zeros_panel(const Pooled& row) {
  return fmt::format(
             "set lmargin at screen 0.09\nset rmargin at screen 0.17\nset grid noxtics\n"
             "set xrange [-1:1]\nset yrange [0:120]\nset xtics (\"exact 0\" 0)\nset ytics 0, 25, 100\nset "
             "xlabel "
             "\"\"\n"
             "set ylabel \"share of all values, %\"\n"
             "set label \"{}\" at 0, {} center offset 0,0.6\n"
             "set label \"{}\" at graph 0, graph 1.08 left font \",13\"\n",
             percent(row.fraction_zero()), 100 * row.fraction_zero(), row.name) +
         plot({{.table = "histogram",
                .where = column_is("tensor", row.name) + " && " + column_is("exponent_log2", "zero"),
                .x = "0",
                .y = "column('share_percent')",
                .style = "with boxes linecolor rgb grey"}});
}

/// The non-zero values by exponent, over the zones of FP16.
std::string exponents_panel(const Pooled& row, double lowest) {
  return fmt::format(
             "unset label\nset lmargin at screen 0.255\nset rmargin at screen 0.98\nset grid xtics\n"
             "set xrange [{}:16]\nset yrange [0:{}]\nset xtics 4\nset ytics autofreq\nset ylabel \"\"\n"
             "set xlabel \"{}\"\n",
             lowest, 1.45 * tallest_bar(row), exponent_label) +
         fp16_zones(lowest) +
         plot({{.table = "histogram",
                .where = column_is("tensor", row.name),
                .x = "column('exponent_log2') + 0.5",
                .y = "column('share_percent')",
                .style = "with boxes linecolor rgb blue"}});
}

std::string histogram_script(const Findings& found, double lowest) {
  std::string script = "set multiplot\nset boxwidth 0.9\nunset key\n";
  int index = 0;
  for (const Pooled* row : {&found.activations, &found.weights})
    script += panel(index++, 2) + zeros_panel(*row) + exponents_panel(*row, lowest);
  return script + "unset multiplot\n";
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
  return fp16_zones(lowest) + fmt::format("set yrange [0:{}]\n", 1.6 * tallest) + plot(curves);
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
  const std::vector<std::string> tensors = sim::names_of(std::span(drawn));
  if (activations.size() <= most_curves && weights.size() <= most_curves) {
    draw_curves(figure, activations, weights, KeyColumn(tensors), lowest);
  } else {
    draw_map(figure, tensors, lowest);
  }
  return figure;
}

}  // namespace

void draw_figures(Run& run, const Findings& found, std::string_view model, const std::string& setting) {
  const double lowest = left_edge(found.all);
  run.figure({.name = "gradient_histogram",
              .title = fmt::format("Gradients of {} by magnitude", model),
              .caption = fmt::format(
                  "{} {} of all values are exact zeros; of the others {} round to zero in FP16. "
                  "FP16's range reaches to 2^16: all of it right of the bars stays unused.",
                  setting, percent(found.all.fraction_zero()), percent(found.all.fraction_flushed(0))),
              .script = histogram_script(found, lowest),
              .height = 640});
  run.figure(layer_figure(found.sites, lowest, model, setting));
}

}  // namespace experiments::gradient_histogram
