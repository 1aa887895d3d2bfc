#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "experiments/frame/figure.h"
#include "experiments/scaler_comparison/ranking.h"

namespace experiments::scaler_comparison {
namespace {

/// Pixels.
constexpr int cell_width = 76, row_height = 19, map_gap = 16, scale_room = 110, title_room = 92,
              axis_room = 40;

/// A value of each strategy in each regime, in cells coloured by a rank.
struct RankMap {
  std::string title;
  std::string rank;   ///< a column of ranking.csv
  std::string label;  ///< a gnuplot expression
};

/// Strategies from the top, regimes from the left.
struct RankAxes {
  std::vector<std::string> strategies;
  std::vector<std::string> regimes;

  explicit RankAxes(const RankingFindings& found) : strategies(best_first(found.regimes)) {
    for (const RegimeFindings& regime : found.regimes) regimes.emplace_back(name_of(regime.regime));
  }
  int names_width() const { return text_width(strategies, 10) + 15; }
  int map_width() const { return std::max(cell_width * static_cast<int>(regimes.size()), 2 * cell_width); }
  int width(std::size_t maps) const {
    return names_width() + static_cast<int>(maps) * (map_width() + map_gap) + scale_room;
  }
  int height() const {
    return title_room + axis_room + row_height * std::max(static_cast<int>(strategies.size()), 8);
  }
};

/// `names` as the tics of an axis, from 1.
std::string tics(const std::vector<std::string>& names) {
  std::vector<std::string> tics;
  for (std::size_t i = 0; i < names.size(); ++i)
    tics.push_back(fmt::format("{} {}", gnuplot_string(names[i]), i + 1));
  return fmt::format("({})", fmt::join(tics, ", "));
}

std::string common_axes(const RankAxes& axes) {
  const double height = axes.height();
  return fmt::format(
      "strategies = {}\nregimes = {}\n"
      "place(names, name) = sum [i = 1:words(names)] (word(names, i) eq name ? i : 0)\n"
      "row(n) = place(strategies, strcol('strategy'))\ncell(n) = place(regimes, strcol('regime'))\n"
      "is_number(column_name) = strcol(column_name) ne 'nan' && strcol(column_name) ne 'inf'\n"
      "set multiplot\nunset key\nunset grid\nset style fill solid 1.0 noborder\n"
      "set palette defined (0 '#F7FBE8', 1 '#B8DFC4', 2 '#5FB3BF', 3 '#2F77A8', 4 '#2B3F80')\n"
      "set cbrange [1:{}]\nset cblabel 'rank, 1: best' offset 2.5,0\nunset colorbox\nset cbtics autofreq\n"
      "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
      "set xrange [0.5:{}.5]\nset yrange [{}.5:0.5]\nset xtics scale 0 font ',11' {}\n"
      "set ytics scale 0 noenhanced font ',10' {}\nset border 0\n",
      gnuplot_string(fmt::format("{}", fmt::join(axes.strategies, " "))),
      gnuplot_string(fmt::format("{}", fmt::join(axes.regimes, " "))),
      std::max<std::size_t>(axes.strategies.size(), 2), 1 - title_room / height, axis_room / height,
      axes.regimes.size(), axes.strategies.size(), tics(axes.regimes), tics(axes.strategies));
}

/// White text on the darker half of the colours.
std::string cells(const RankMap& map, const RankAxes& axes) {
  return fmt::format(
      "plot \"ranking.csv\" using (is_number('{0}') ? cell(0) : NaN):(row(0)):(cell(0) - 0.48):(cell(0) + "
      "0.48):"
      "(row(0) - 0.46):(row(0) + 0.46):(column('{0}')) with boxxyerror linecolor palette notitle, \\\n"
      "  \"ranking.csv\" using (cell(0)):(row(0)):({1}):(is_number('{0}') && column('{0}') > {2} ? 0xFFFFFF "
      ": "
      "0x222222) with labels noenhanced font ',10' textcolor rgb variable notitle\n",
      map.rank, map.label, 0.55 * static_cast<double>(axes.strategies.size()));
}

std::string rank_maps(const std::vector<RankMap>& maps, const RankAxes& axes) {
  const double width = axes.width(maps.size()), height = axes.height();
  std::string script = common_axes(axes);
  int left = axes.names_width();
  for (const RankMap& map : maps) {
    const int right = left + axes.map_width();
    script += "unset label\n";
    if (&map == &maps.front()) script += "eval draw_title\n";
    if (&map == &maps.back()) {
      script += fmt::format(
          "set colorbox user origin screen {:.4f}, screen {:.4f} size screen {:.4f}, screen {:.4f}\n",
          (right + 18) / width, axis_room / height, 16 / width,
          std::min(260.0, height - title_room - axis_room) / height);
    }
    script += fmt::format(
        "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n"
        "set label {} at graph 0.5, screen {:.4f} center noenhanced font ',13'\n",
        left / width, right / width, gnuplot_string(map.title), 1 - 70 / height);
    script += cells(map, axes) + "unset ytics\n";
    left = right + map_gap;
  }
  return script + "unset multiplot\n";
}

/// The value, or what stands for it where it is no number.
std::string label(std::string_view column, std::string_view format) {
  return fmt::format(
      "(strcol('{0}') eq 'nan' ? '-' : strcol('{0}') eq 'inf' ? 'inf' : sprintf('{1}', column('{0}')))",
      column, format);
}

std::string excess_label() {
  return "(is_number('relative_excess') ? sprintf('%+.1f %%', 100 * column('relative_excess')) : 'inf')";
}

std::string rank_column(std::size_t place) {
  return std::string(criteria[place].key) + "_rank";
}

}  // namespace

void draw_ranking(Run& run, const RankingFindings& found) {
  const RankAxes axes(found);
  const std::string order = "From the top by the mean of their ranks over the regimes.";
  run.figure(
      {.name = "ranking",
       .title = "Ranks of loss scalers by regime",
       .caption = fmt::format("{} In the cells the mean of a strategy's ranks in gradient error, lost steps, "
                              "recovery and final loss. {}",
                              found.setting(), order),
       .script = rank_maps(
           {{.title = "mean of ranks", .rank = "mean_of_ranks", .label = label("mean_of_ranks", "%.1f")}},
           axes),
       .width = axes.width(1),
       .height = axes.height()});
  run.figure(
      {.name = "criteria",
       .title = "What the ranks are made of",
       .caption =
           fmt::format("{} Means over the seeds, coloured by rank; final loss against FP32 of the same "
                       "regime. inf: no finite value, which is last; -: does not apply; ≥: cut off by the "
                       "end of a run; without a colour: does not count. {}",
                       found.setting(), order),
       .script = rank_maps(
           {{.title = "gradient error",
             .rank = rank_column(criterion::relative_error),
             .label = label(criteria[criterion::relative_error].key, "%.2g")},
            {.title = "lost steps",
             .rank = rank_column(criterion::lost_steps),
             .label = label(criteria[criterion::lost_steps].key, "%.3g")},
            {.title = "recovery, steps",
             .rank = rank_column(criterion::recovery_steps),
             .label = "(column('unfinished_recoveries') > 0 ? '≥ ' : '') . " +
                      label(criteria[criterion::recovery_steps].key, "%.3g")},
            {.title = "final loss", .rank = rank_column(criterion::final_loss), .label = excess_label()}},
           axes),
       .width = axes.width(criteria.size()),
       .height = axes.height()});
}

}  // namespace experiments::scaler_comparison
