#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "experiments/accumulation/findings.h"
#include "experiments/frame/printable.h"
#include "fp16/formats.h"
#include "fp16/mma.h"

namespace experiments::accumulation {
namespace {

/// A curve of the key: an accumulator and how it is drawn.
struct Line {
  std::string accumulator;
  std::string title;
  std::string style;
};

constexpr std::string_view error_axis =
    "set logscale y\nset yrange [1e-9:4]\nset ytics 100\nset mytics 1\nset format y \"10^{%T}\"\n";

/// What both panels of a figure of errors share: the axis of lengths and the keys in a column at the right.
std::string common_axes(const KeyColumn& keys, const Options& options) {
  return fmt::format(
      "set multiplot\n{}set xrange [{}:{}]\nset xtics 2\nset format x \"2^{{%g}}\"\n{}"
      "n_u(x, u) = 2**x * u\nsqrt_n_u(x, u) = 2**(x / 2) * u\n",
      keys.script(), min_length_log2, options.max_length_log2, error_axis);
}

/// Above the left end of each pair of growth lines whose u it has.
std::string growth_labels() {
  std::string labels;
  for (const auto& [format, name] : {std::pair{fp16::binary16, "FP16"}, std::pair{fp16::binary32, "FP32"}}) {
    labels += fmt::format(
        "set label 'u of {}' at first {}, first 2.0**({} - {}) left offset 0.5, 1.3 textcolor rgb grey font "
        "',11'\n",
        name, min_length_log2, min_length_log2, format.precision);
  }
  return labels;
}

/// n u and sqrt(n) u of both formats in grey; the key names those of one.
std::string growth_lines() {
  const auto lines = [](const fp16::Format& format, std::string_view titles) {
    return fmt::format(
        ", n_u(x, 2.0**-{0}) with lines linecolor rgb grey linewidth 1 dashtype 2 {1}, "
        "sqrt_n_u(x, 2.0**-{0}) with lines linecolor rgb grey linewidth 1 dashtype 3 {2}",
        format.precision, titles.empty() ? "notitle" : "title 'n u'",
        titles.empty() ? "notitle" : "title '√n u'");
  };
  return lines(fp16::binary16, "titles") + lines(fp16::binary32, "");
}

std::string errors_panel(int index, const std::vector<Line>& lines, std::string_view distribution,
                         std::string_view column, std::string_view label) {
  std::vector<Curve> curves;
  for (const Line& line : lines) {
    curves.push_back({.table = "dots",
                      .where = column_is("distribution", distribution) + " && " +
                               column_is("accumulator", line.accumulator) +
                               fmt::format(" && column('{}') > 0", column),
                      .x = "column('length_log2')",
                      .y = fmt::format("column('{}')", column),
                      .style = "with linespoints " + line.style,
                      .title = line.title});
  }
  std::string drawn = plot(curves);
  drawn.insert(drawn.size() - 1, growth_lines());
  return panel(index, 2) + growth_labels() +
         fmt::format("set xlabel \"length n of the dot product\"\nset ylabel \"{}\"\n", label) + drawn;
}

std::string errors_script(const std::vector<Line>& lines, const KeyColumn& keys, const Options& options) {
  return common_axes(keys, options) +
         errors_panel(0, lines, "uniform", "relative_error", "positive: relative error") + "unset key\n" +
         errors_panel(1, lines, "normal", "backward_error", "signed: error / sum |ab|") + "unset multiplot\n";
}

KeyColumn key_column(const std::vector<Line>& lines) {
  std::vector<std::string> titles;
  for (const Line& line : lines) titles.push_back(line.title);
  return KeyColumn(titles);
}

Figure errors_figure(Figure figure, const std::vector<Line>& lines, const Options& options) {
  const KeyColumn keys = key_column(lines);
  figure.script = errors_script(lines, keys, options);
  figure.width = keys.figure_width();
  figure.height = 720;
  return figure;
}

std::vector<Line> order_lines() {
  std::vector<Line> lines;
  for (const std::string_view name : {"fp16_mul_add", "fp16_fma", "fp16_pairwise", "fp16_blocked_tree_32",
                                      "fp16_kahan", "fp16_neumaier", "fp32"}) {
    lines.push_back(
        {std::string(name), std::string(name),
         fmt::format("linetype {}{}", lines.size() + 1, lines.empty() ? " pointtype 6 pointsize 1.2" : "")});
  }
  return lines;
}

/// Line types of architectures: those that fp16_fma and fp32 do not have.
constexpr std::array core_linetypes{1, 4, 5, 6, 3};

/// Architectures whose steps are the same share a curve, which their names share too.
struct SameCores {
  std::string first;
  std::string names;
};

std::vector<SameCores> different_cores() {
  std::vector<const fp16::TensorCore*> drawn;
  std::vector<SameCores> groups;
  for (const fp16::TensorCore& core : fp16::tensor_cores) {
    const auto same = std::ranges::find_if(drawn, [&](const fp16::TensorCore* other) {
      return other->products_per_step == core.products_per_step && other->fraction_bits == core.fraction_bits;
    });
    if (same != drawn.end()) {
      groups[static_cast<std::size_t>(same - drawn.begin())].names += fmt::format(", {}", core.name);
    } else if (groups.size() < core_linetypes.size()) {
      drawn.push_back(&core);
      groups.push_back({std::string(core.name), std::string(core.name)});
    }
  }
  return groups;
}

std::vector<Line> tensor_core_lines() {
  std::vector<Line> lines{{"fp16_fma", "fp16_fma", "linetype 2"}, {"fp32", "fp32", "linetype 7"}};
  for (const std::string_view mode : {"fp16", "fp32"}) {
    std::size_t index = 0;
    for (const SameCores& cores : different_cores()) {
      lines.push_back(
          {fmt::format("{}_{}", cores.first, mode), fmt::format("{} {}", cores.names, mode),
           fmt::format("linetype {}{}", core_linetypes[index++], mode == "fp16" ? " dashtype 2" : "")});
    }
  }
  return lines;
}

/// Words where the curve of a method ends because its errors become infinite.
std::string overflow_labels(const std::vector<MeasuredMean>& means, Loss loss) {
  std::string labels;
  for (const MeasuredMean& mean : means) {
    const std::optional<Failure> failure = mean.failure();
    if (mean.method.loss != loss || !failure || failure->kind != Failure::Kind::overflows) continue;
    labels += fmt::format(
        "set label 'sum first overflows' at first {}, first {:g} right offset 0, 1.4 textcolor rgb "
        "vermillion font "
        "',12'\n",
        failure->batch_log2, mean.errors[static_cast<std::size_t>(failure->batch_log2 - 1)].error.mean);
  }
  return labels;
}

Curve loss_curve(const MeanMethod& method) {
  const bool first = method.normalisation == Normalisation::divide_first;
  const int linetype = 1 + static_cast<int>(method.reduction);
  return {.table = "loss_reduction",
          .where = column_is("loss", name_of(method.loss)) + " && " +
                   column_is("reduction", name_of(method.reduction)) + " && " +
                   column_is("normalisation", name_of(method.normalisation)) +
                   " && column('relative_error') > 0",
          .x = "column('batch_log2')",
          .y = "column('relative_error')",
          .style = fmt::format("with linespoints linetype {}{}", linetype,
                               first ? " dashtype 2 pointtype 6 pointsize 1.1" : ""),
          .title = fmt::format("{}, {}", name_of(method.reduction), first ? "divide first" : "sum first")};
}

/// In both panels the same titles, of which one panel shows them.
std::vector<Curve> loss_curves(Loss loss) {
  std::vector<Curve> curves;
  for (const MeanMethod& method : mean_methods()) {
    if (method.loss == loss) curves.push_back(loss_curve(method));
  }
  return curves;
}

Figure loss_figure(Figure figure, const std::vector<MeasuredMean>& means) {
  std::vector<std::string> titles;
  for (const Curve& curve : loss_curves(Loss::l1)) titles.push_back(curve.title);
  const KeyColumn keys(titles);
  const auto loss_panel = [&](int index, Loss loss, std::string_view name) {
    return panel(index, 2) + overflow_labels(means, loss) +
           fmt::format("set ylabel \"{} loss: relative error\"\n", name) + plot(loss_curves(loss));
  };
  figure.script = fmt::format(
      "set multiplot\n{}set xrange [0:{}]\nset xtics 1\nset format x \"2^{{%g}}\"\n{}"
      "set xlabel \"values in the mini-batch\"\n{}unset key\n{}unset multiplot\n",
      keys.script(), max_batch_log2, error_axis, loss_panel(0, Loss::l1, "L1"),
      loss_panel(1, Loss::mse, "MSE"));
  figure.width = keys.figure_width();
  figure.height = 720;
  return figure;
}

}  // namespace

void draw_figures(Run& run, const std::vector<MeasuredMean>& means, const Options& options,
                  const std::string& setting) {
  const std::string growth =
      " Grey: the certain bound n u and the probabilistic sqrt(n) u, the upper pair with u = 2^-11 of FP16, "
      "the lower with 2^-24 of FP32; a curve ends where a sum overflows.";
  run.figure(errors_figure({.name = "orders",
                            .title = "Error of a dot product of halves, by accumulator and order",
                            .caption = setting + growth,
                            .script = {}},
                           order_lines(), options));
  run.figure(errors_figure(
      {.name = "tensor_cores",
       .title = "Error of a dot product of halves on tensor cores, by architecture and accumulator",
       .caption = setting + " FP16 accumulators dashed." + growth,
       .script = {}},
      tensor_core_lines(), options));
  run.figure(loss_figure(
      {.name = "loss_reduction",
       .title = "Error of the mean of a loss over a mini-batch",
       .caption = fmt::format(
           "Predictions and targets are normal random numbers of variance 1, as halves; mean over {}, "
           "seed {}. The sum is divided by the batch (solid), or each value is (dashed, open): an FP16 "
           "sum that has stalled stays as wrong, one that overflows is mended.",
           counted(options.vectors, "repeat"), options.seed),
       .script = {}},
      means));
}

}  // namespace experiments::accumulation
