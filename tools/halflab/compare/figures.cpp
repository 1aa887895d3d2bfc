#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/frame/figure.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/compare/findings.h"

namespace halflab::compare {
namespace {

using namespace experiments;

constexpr std::size_t most_tensors = 60;

std::string tic_label(std::size_t bin) {
  const auto [from, to] = UlpHistogram::range(bin);
  if (from == to) return fmt::format("{}", from);
  return bin <= 7 ? fmt::format("{}–{}", from, to) : fmt::format("2^{{{}}}", bin - 1);
}

std::string distance_tics(std::size_t bins) {
  const std::size_t step = bins / 16 + 1;
  std::string tics;
  for (std::size_t bin = 0; bin < bins; bin += step)
    tics += fmt::format("{}\"{}\" {}", tics.empty() ? "" : ", ", tic_label(bin), bin);
  return fmt::format("set xtics ({})\n", tics);
}

std::string distance_label(const Findings& found) {
  const fp16::NamedFormat* const format = found.pairs.front().format;
  const bool is_one = std::ranges::all_of(found.pairs, [&](auto& pair) { return pair.format == format; });
  return fmt::format("distance of A and B, ulp{}",
                     is_one ? fmt::format(" of {}", format->name) : " of each one's format");
}

Figure distances_figure(const Findings& found) {
  const std::size_t bins = found.total.by_ulp.used_bins();
  std::vector<double> shares;
  for (const std::uint64_t count : found.total.by_ulp.counts)
    shares.push_back(100 * static_cast<double>(count) / static_cast<double>(found.total.elements));
  std::string caption = fmt::format("Of {} values in all tensors.", found.total.elements);
  if (found.total.one_nan > 0)
    caption += fmt::format(" Not drawn: {} of which one side alone is a NaN.", found.total.one_nan);
  return {.name = "distances",
          .title = "How far apart the values are",
          .caption = caption,
          .script = log_axis(shares) + distance_tics(bins) +
                    fmt::format("set xrange [-0.7:{}]\nset xlabel \"{}\"\nset ylabel \"share of all values, "
                                "%\"\nset style fill solid 0.8\nset boxwidth 0.9\n",
                                static_cast<double>(bins) - 0.3, distance_label(found)) +
                    plot({{.table = "distances",
                           .where = column_is("tensor", "all tensors"),
                           .x = "column('bin')",
                           .y = "column('share_percent')",
                           .style = "with boxes linecolor rgb blue"}})};
}

Figure tensors_figure(const Findings& found) {
  std::vector<const PairFound*> drawn;
  for (const PairFound& pair : found.pairs) {
    if (pair.counts.differing > 0) drawn.push_back(&pair);
  }
  std::string left_out;
  if (drawn.size() > most_tensors) {
    left_out = fmt::format(" Drawn are the first {} of {} tensors that differ.", most_tensors, drawn.size());
    drawn.resize(most_tensors);
  }
  const std::size_t bins = found.total.by_ulp.used_bins();
  HeatMapAxes axes{.tensors = {},
                   .lowest = -0.5,
                   .highest = static_cast<double>(bins) - 0.5,
                   .x_label = distance_label(found),
                   .color_label = "share of values, %",
                   .x_marks = distance_tics(bins)};
  for (const PairFound* const pair : drawn) axes.tensors.push_back(pair->name);
  return {
      .name = "tensors",
      .title = "How far apart the values of each tensor are",
      .caption = "Tensors in which something differs; white: nothing so far apart." + left_out,
      .script = heat_maps(
          {{.table = "distances", .title = "", .x = "column('bin')", .percent = "column('share_percent')"}},
          axes),
      .width = heat_map_width(axes, 1),
      .height = heat_map_height(axes)};
}

}  // namespace

void draw_figures(Run& run, const Findings& found) {
  if (found.total.differing == 0) return;
  run.figure(distances_figure(found));
  if (std::ranges::count_if(found.pairs, [](const PairFound& pair) { return pair.counts.differing > 0; }) > 1)
    run.figure(tensors_figure(found));
}

}  // namespace halflab::compare
