#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "experiments/memory_anatomy/findings.h"

namespace experiments::memory_anatomy {
namespace {

struct Bar {
  std::string_view bytes;  ///< columns of `memory`, an expression
  std::string_view color;
  std::string_view title;
};
constexpr std::array bars{
    Bar{"column('weights_bytes') + column('buffers_bytes')", "blue", "weights"},
    Bar{"column('cast_weights_bytes')", "sky", "casts of weights"},
    Bar{"column('master_weights_bytes')", "purple", "master weights"},
    Bar{"column('gradients_bytes')", "vermillion", "gradients"},
    Bar{"column('unscaled_gradients_bytes')", "orange", "unscaled gradients"},
    Bar{"column('optimizer_state_bytes')", "green", "optimizer state"},
    Bar{"column('activations_bytes')", "grey", "activations"},
};

/// What the card has is drawn where the bars can still be read beside it.
std::string memory_script(const FigureSetting& setting) {
  const double available = setting.available_bytes / 0x1p30, highest = setting.highest_bytes / 0x1p30;
  const bool is_drawn = available < 3 * highest;
  std::string script = fmt::format(
      "set style data histograms\nset style histogram rowstacked\nset boxwidth 0.7\nset grid noxtics\n"
      "set yrange [0:{:.6g}]\nset ylabel \"memory, GiB\"\n"
      "set key outside right top vertical Left reverse invert noenhanced maxcols 1\n",
      1.1 * (is_drawn ? std::max(available, highest) : highest));
  if (is_drawn) {
    script += fmt::format(
        "available = {:.6g}\nset arrow from graph 0, first available to graph 1, first available nohead "
        "dashtype 2 "
        "linecolor rgb black linewidth 1.5\nset label \"what the card has\" at graph 0.99, first available "
        "right "
        "offset 0, 0.5 textcolor rgb \"#222222\" font \",11\"\n",
        available);
  }
  script += "plot ";
  for (const Bar& bar : bars) {
    script += fmt::format("{}\"memory.csv\" using (({}) / 2.0**30):xtic(1) linecolor rgb {} title \"{}\"",
                          &bar == bars.begin() ? "" : ", ", bar.bytes, bar.color, bar.title);
  }
  return script + "\n";
}

std::string points(const sim::OperatorClass operator_class, int linetype) {
  return fmt::format(
      "\"operators.csv\" using (strcol('class') eq {} && column('flop') > 0 ? "
      "column('intensity_flop_per_byte') : "
      "NaN):(column('attainable_flop_per_s') / 1e12):(0.5 + 4 * sqrt(column('time_share'))) with points "
      "linetype {} "
      "pointsize variable title \"{}\"",
      gnuplot_string(name_of(operator_class)), linetype, name_of(operator_class));
}

std::string roofline_script(const FigureSetting& setting) {
  const double contraction = setting.card.contraction_flop_per_s(setting.contractions) / 1e12,
               vector = setting.card.vector_flop_per_s / 1e12;
  return fmt::format(
      "set logscale xy\nset samples 2000\nset xrange [0.05:5000]\nset yrange [0.02:{:.3g}]\n"
      "set xlabel \"arithmetic intensity, FLOP/byte\"\nset ylabel \"attainable rate, TFLOP/s\"\nset key "
      "maxcols 3\n"
      "bandwidth = {:.6g}\ncontraction = {:.6g}\nvector = {:.6g}\nsmaller(a, b) = a < b ? a : b\n"
      "set label \"contractions\" at 4500, contraction right offset 0, 0.6 textcolor rgb \"#444444\" font "
      "\",11\"\n"
      "set label \"everything else\" at 4500, vector right offset 0, 0.6 textcolor rgb \"#444444\" font "
      "\",11\"\n"
      "plot smaller(x * bandwidth, contraction) with lines linecolor rgb \"#444444\" linewidth 1.5 notitle, "
      "smaller(x * bandwidth, vector) with lines linecolor rgb \"#444444\" linewidth 1.5 dashtype 2 notitle, "
      "{}, {}, {}\n",
      3 * contraction, setting.card.bytes_per_s / 1e12, contraction, vector,
      points(sim::OperatorClass::tensor_contraction, 1),
      points(sim::OperatorClass::statistical_normalisation, 2), points(sim::OperatorClass::element_wise, 3));
}

}  // namespace

void draw_figures(Run& run, const FigureSetting& setting) {
  run.figure(
      {.name = "memory",
       .title = "What a training step has in memory",
       .caption = fmt::format("{}; no recomputation, without temporaries. What {} has "
                              "beside the device's own kernels: {:.2f} GiB.",
                              setting.network, setting.card.description, setting.available_bytes / 0x1p30),
       .script = memory_script(setting)});
  run.figure({.name = "roofline",
              .title = "What bounds each operator",
              .caption = fmt::format(
                  "{}, policy {}, on {}: forward and backward kernels, none fused, at the rate that "
                  "nominal bandwidth and arithmetic allow; the area of a point grows with its "
                  "share of the time. Conversions, which compute nothing, are left out.",
                  setting.network, setting.policy, setting.card.description),
              .script = roofline_script(setting)});
}

}  // namespace experiments::memory_anatomy
