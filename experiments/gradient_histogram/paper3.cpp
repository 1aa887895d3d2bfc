#include "experiments/gradient_histogram/paper3.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/frame/columns.h"
#include "experiments/frame/figure.h"
#include "experiments/frame/text_table.h"
#include "experiments/gradient_histogram/panels.h"

namespace experiments::gradient_histogram {
namespace {

using fp16::ExponentHistogram;

constexpr double right_edge = 40;  ///< what lies beyond it is told by its share alone
constexpr int fine_from = -24;     ///< from here on a bar is one octave wide

/// The lower edge of the bar with this exponent: even below fine_from.
int lower_edge(int exponent) {
  return exponent >= fine_from ? exponent : 2 * static_cast<int>(std::floor(exponent / 2.0));
}

constexpr const char* when = "--figure paper3";

/// A bar at one scale; that of the zeros has no bin.
struct ScaledBin {
  int scale_log2;
  std::optional<Bin> bin;
  double percent;

  Value edge(int Bin::*which) const { return bin ? Value((*bin).*which) : Value("zero"); }
};

const TableOf<ScaledBin> table{
    .name = "paper3",
    .rows = "each bar at each scale",
    .columns = {{"scale_log2", "log2", &ScaledBin::scale_log2},
                {"lower_log2", "log2", [](auto& b) { return b.edge(&Bin::lower); }},
                {"upper_log2", "log2", [](auto& b) { return b.edge(&Bin::upper); }},
                {"share_percent", "%", &ScaledBin::percent}},
    .when = when};

const SummaryOf<double> summary{
    {{"paper3_share_flushed_at_scale_<S>", "of all values drawn, zeros included, become zero at S",
      [](double share) { return share; }, when}}};

double share_of(const ExponentHistogram& gradients, std::uint64_t count) {
  return static_cast<double>(count) / static_cast<double>(gradients.total());
}

std::string scale_text(int scale_log2) {
  return scale_log2 >= 0 && scale_log2 <= 3 ? fmt::format("{}", 1 << scale_log2)
                                            : fmt::format("2^{{{}}}", scale_log2);
}

/// What becomes of all values at one scale.
struct Shares {
  double zero, flushed, overflowed, left;

  Shares(const ExponentHistogram& gradients, int shift_log2) {
    const std::uint64_t vanish = gradients.flushed_at_scale(shift_log2),
                        not_finite = gradients.overflowed_at_scale(shift_log2) + gradients.infinite() +
                                     gradients.nan();
    zero = share_of(gradients, gradients.zero());
    flushed = share_of(gradients, vanish);
    overflowed = share_of(gradients, not_finite);
    left = share_of(gradients, gradients.total() - gradients.zero() - vanish - not_finite);
  }

  std::string title(int scale_log2) const {
    return fmt::format("S = {}: {} more become zero, {}{} are left", scale_text(scale_log2), percent(flushed),
                       overflowed > 0 ? fmt::format("{} are not finite, ", percent(overflowed)) : "",
                       percent(left));
  }
};

/// One row of the figure: zeros at the left, bars over FP16's zones at the right.
std::string row_of_panels(const Paper3& figure, int scale_log2, double tallest, double highest) {
  const Shares shares(figure.gradients, scale_log2 - figure.scaled_by_log2);
  return zeros_panel({.table = "paper3",
                      .where = fmt::format("column('scale_log2') == {} && {}", scale_log2,
                                           column_is("lower_log2", "zero")),
                      .percent = 100 * shares.zero,
                      .title = shares.title(scale_log2)}) +
         exponents_axes(figure.lowest, highest, 1.3 * tallest,
                        fmt::format("log₂ of |{}|{}, bars two octaves wide below −24", figure.noun,
                                    scale_log2 == 0 ? "" : " times S")) +
         fp16_zones(figure.lowest, highest) +
         fmt::format(
             "plot \"paper3.csv\" using (column('scale_log2') == {} && strcol('lower_log2') ne 'zero' ? "
             "(column('lower_log2') + column('upper_log2')) / 2 : "
             "NaN):(column('share_percent') / 2):(column('lower_log2') + 0.06):(column('upper_log2') - "
             "0.06):(0):(column('share_percent')) with boxxyerror linecolor rgb blue notitle\n",
             scale_log2);
}

}  // namespace

std::vector<Bin> paper_bins(const ExponentHistogram& gradients, int shift_log2) {
  std::vector<Bin> bins;
  if (gradients.nonzero_finite() == 0) return bins;
  for (int e = *gradients.lowest_exponent(); e <= *gradients.highest_exponent(); ++e) {
    const int shifted = e + shift_log2, lower = lower_edge(shifted);
    if (bins.empty() || bins.back().lower != lower)
      bins.push_back({lower, lower >= fine_from ? lower + 1 : lower + 2, 0});
    bins.back().percent += percent_of(gradients, gradients.octave(e).total);
  }
  return bins;
}

double percent_of(const ExponentHistogram& gradients, std::uint64_t count) {
  return 100 * static_cast<double>(count) / static_cast<double>(gradients.total());
}

Outputs paper3_outputs() {
  return outputs_of(table, summary);
}

void draw_paper3(Run& run, const Paper3& figure) {
  const ExponentHistogram& gradients = figure.gradients;
  const auto add = table.start(run.record());
  double tallest = 0.1, highest = fp16_overflow_log2;
  for (const int scale_log2 : figure.scales_log2) {
    const int shift_log2 = scale_log2 - figure.scaled_by_log2;
    const Shares shares(gradients, shift_log2);
    summary.write(run.record(), shares.flushed, {fmt::format("2^{}", scale_log2)});
    add({scale_log2, std::nullopt, 100 * shares.zero});
    for (const Bin& bin : paper_bins(gradients, shift_log2)) {
      add({scale_log2, bin, bin.percent});
      tallest = std::max(tallest, bin.percent);
      highest = std::clamp<double>(bin.upper, highest, right_edge);
    }
  }
  std::string script = "set multiplot\nset boxwidth 0.9\nunset key\n";
  const int rows = static_cast<int>(figure.scales_log2.size());
  for (int row = 0; row < rows; ++row)
    script += panel(row, rows) +
              row_of_panels(figure, figure.scales_log2[static_cast<std::size_t>(row)], tallest, highest);
  run.figure({.name = "paper3",
              .title = figure.title,
              .caption = figure.caption +
                         " Bars are two octaves wide below 2^-24 and one above, as in figure "
                         "3 of Micikevicius et al. (2018).",
              .script = script + "unset multiplot\n",
              .height = 140 + 240 * rows});
}

}  // namespace experiments::gradient_histogram
