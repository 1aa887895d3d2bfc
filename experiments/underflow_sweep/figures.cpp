#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/training/gradient_sites.h"
#include "experiments/underflow_sweep/findings.h"
#include "fp16/names.h"

namespace experiments::underflow_sweep {
namespace {

constexpr std::string_view scale_label = "log₂ of the loss scale S";
constexpr std::array percent_axis{0.0001, 100.0};

std::size_t last_scale(const std::vector<ScaleResult>& results) {
  return std::max<std::size_t>(results.size() - 1, 1);
}

/// Begins a multiplot whose panels share the axis of scales.
std::string panels_over_scales(const std::vector<ScaleResult>& results) {
  constexpr int most_tics = 16;
  const std::size_t last = last_scale(results);
  return fmt::format("set multiplot\nset xtics {}\nset xrange [0:{}]\nset xlabel \"{}\"\n",
                     octaves_between_tics(static_cast<double>(last), most_tics), last, scale_label);
}

Curve share_curve(std::string_view share, int linetype, bool predicted) {
  return {.table = "sweep",
          .x = "column('scale_log2')",
          .y = fmt::format("column('fraction_{0}{1}') > 0 ? 100 * column('fraction_{0}{1}') : NaN", share,
                           predicted ? "_predicted" : ""),
          .style = fmt::format("with {} linetype {}", predicted ? "lines" : "points", linetype)};
}

/// An entry of the key, itself out of sight.
Curve key_entry(std::string_view title, const std::string& style) {
  return {.table = "sweep", .x = "-1", .y = "1", .style = style, .title = std::string(title)};
}

std::string sweep_script(const std::vector<ScaleResult>& results) {
  std::vector<Curve> shares;
  int linetype = 0;
  for (const std::string_view share : {"subnormal", "flushed", "overflow"}) {
    shares.push_back(key_entry(share, fmt::format("with linespoints linetype {}", ++linetype)));
    shares.push_back(share_curve(share, linetype, false));
    shares.push_back(share_curve(share, linetype, true));
  }
  shares.push_back(
      {.table = "sweep",
       .x = "column('scale_log2')",
       .y = "column('fraction_lost_upstream') > 0 ? 100 * column('fraction_lost_upstream') : NaN",
       .style = "with linespoints linetype 5 dashtype 3",
       .title = "lost upstream"});
  shares.push_back(key_entry("points: measured", "with points pointtype 7 linecolor rgb 'gray40'"));
  shares.push_back(key_entry("lines: predicted", "with lines linecolor rgb 'gray40'"));
  std::vector<double> norms;
  for (const ScaleResult& result : results) {
    norms.push_back(result.relative_error);
    norms.push_back(result.total().norm_share_flushed());
  }
  return panels_over_scales(results) + panel(0, 2) + log_axis(percent_axis) +
         "set ylabel \"share of non-zero values, %\"\nset key width 1\n" + plot(shares) + panel(1, 2) +
         log_axis(norms) + "set ylabel \"norm relative to the twin's\"\nset key width -1\n" +
         plot({{.table = "sweep",
                .x = "column('scale_log2')",
                .y = "column('relative_error')",
                .style = "with linespoints linetype 4",
                .title = "error of the gradient"},
               {.table = "sweep",
                .x = "column('scale_log2')",
                .y = "column('norm_share_flushed') > 0 ? column('norm_share_flushed') : NaN",
                .style = "with linespoints linetype 2",
                .title = "flushed part of the gradient"}}) +
         "unset multiplot\n";
}

/// A column of the layers that is a share, weights dashed.
std::vector<Curve> layer_curves(const std::vector<sim::GradientSite>& sites, std::string_view column,
                                bool titles) {
  std::vector<Curve> curves;
  for (const sim::GradientSite& site : sites) {
    const bool weight = site.kind == sim::GradientSite::Kind::weight;
    curves.push_back({.table = "layers",
                      .where = column_is("tensor", site.name) + fmt::format(" && column('{}') > 0", column),
                      .x = "column('scale_log2')",
                      .y = fmt::format("100 * column('{}')", column),
                      .style = fmt::format("with linespoints linetype {} pointsize 0.5{}", curves.size() + 1,
                                           weight ? " dashtype 2" : ""),
                      .title = titles ? site.name : ""});
  }
  return curves;
}

/// Flushed values above, the part of the norm that went with them below.
std::string layer_panels(const std::vector<sim::GradientSite>& sites, const std::vector<ScaleResult>& results,
                         const KeyColumn& key) {
  std::vector<double> norms;
  for (const ScaleResult& result : results) {
    for (const sim::TwinComparison& site : result.sites) norms.push_back(100 * site.norm_share_flushed());
  }
  const auto panel_of = [&](int index, std::string_view column, std::string_view label,
                            std::span<const double> shown) {
    return panel(index, 2) + key.script() + log_axis(shown) + fmt::format("set ylabel \"{}\"\n", label) +
           plot(layer_curves(sites, column, index == 0));
  };
  return panels_over_scales(results) + panel_of(0, "fraction_flushed", "flushed values, %", percent_axis) +
         panel_of(1, "norm_share_flushed", "flushed part of the norm, %", norms) + "unset multiplot\n";
}

HeatMap layer_map(std::string title, std::string_view column) {
  return {.table = "layers",
          .title = std::move(title),
          .x = "column('scale_log2')",
          .percent = fmt::format("(100 * column('{}'))", column)};
}

Figure layer_figure(const Findings& found, const std::string& setting) {
  const std::vector<sim::GradientSite> sites = drawn_sites(found.sites);
  const std::vector<std::string> tensors = names::names_of(std::span(sites));
  Figure figure{.name = "layers",
                .title = fmt::format("What {} flushed of each tensor's gradient", found.subject()),
                .caption = setting,
                .script = {}};
  if (sites.size() <= most_curves) {
    const KeyColumn key(tensors);
    figure.caption += " Gradients of layers' outputs solid, of their weights dashed.";
    figure.script = layer_panels(sites, found.results, key);
    figure.width = key.figure_width();
    figure.height = 640;
    return figure;
  }
  const HeatMapAxes axes{.tensors = tensors,
                         .lowest = -0.5,
                         .highest = static_cast<double>(last_scale(found.results)) + 0.5,
                         .x_label = std::string(scale_label),
                         .color_label = "flushed, %"};
  const std::vector<HeatMap> maps{layer_map("of the non-zero values", "fraction_flushed"),
                                  layer_map("of the norm", "norm_share_flushed")};
  figure.caption +=
      " From the top the gradients of the layers' outputs, then those of their weights, each in the order of "
      "computation; white where nothing was flushed.";
  figure.script = heat_maps(maps, axes);
  figure.width = heat_map_width(axes, maps.size());
  figure.height = heat_map_height(axes);
  return figure;
}

}  // namespace

void draw_figures(Run& run, const Findings& found, const std::string& setting) {
  run.figure(
      {.name = "sweep",
       .title = "What the loss scale saves and what it breaks",
       .caption = setting +
                  " Points: measured in a real scaled backward pass. Lines: predicted from the "
                  "exponent histogram of the twin's gradients alone. Lost upstream, dotted: zero though "
                  "FP16 could have held them.",
       .script = sweep_script(found.results),
       .height = 640});
  run.figure(layer_figure(found, setting));
}

}  // namespace experiments::underflow_sweep
