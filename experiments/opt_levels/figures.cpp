#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "experiments/opt_levels/findings.h"

namespace experiments::opt_levels {
namespace {

/// Pixels: rows of recipes, what stands above and below them, panels and the gap between two.
constexpr int row_height = 26, top = 112, bottom = 64, panel_width = 400, panel_gap = 30;

int figure_height(const Findings& found) {
  return top + bottom + row_height * static_cast<int>(found.recipes.size());
}

std::vector<std::string> names_of(const Findings& found) {
  std::vector<std::string> names;
  for (const Recipe& recipe : found.recipes) names.push_back(recipe.name);
  return names;
}

int names_width(const std::vector<std::string>& labels) {
  constexpr int tics = 32;
  return text_width(labels) + tics;
}

/// A panel with a row for each recipe, from the top; labels at the first panel alone.
std::string rows_panel(const Findings& found, int index, const std::vector<std::string>& labels, int width) {
  const int names = names_width(labels);
  const double left = names + index * (panel_width + panel_gap), height = figure_height(found);
  std::vector<std::string> tics;
  for (std::size_t i = 0; i < labels.size(); ++i)
    tics.push_back(fmt::format("{} {}", gnuplot_string(index == 0 ? labels[i] : ""), i));
  return fmt::format(
      "unset label\nunset arrow\n{}set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n"
      "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
      "set yrange [{}.5:-0.5]\nset ytics noenhanced ({})\n",
      index == 0 ? "eval draw_title\n" : "", left / width, (left + panel_width) / width, 1 - top / height,
      bottom / height, labels.size() - 1, fmt::join(tics, ", "));
}

int rows_width(const std::vector<std::string>& labels, int panels) {
  return names_width(labels) + panels * panel_width + (panels - 1) * panel_gap + 25;
}

/// An axis of differences to FP32 in percentage points, or in the loss. A recipe that ruins a network would
/// press the others together: whatever loses more than `most` is named at the edge.
class DifferenceAxis {
 public:
  DifferenceAxis(const Findings& found, std::span<const Estimate> drawn)
      : factor_(found.is_classifier() ? 100 : 1),
        most_(found.is_classifier() ? 30 : found.at_default(0).estimate("final_loss").mean),
        sign_(found.is_classifier() ? -1 : 1) {
    lowest_ = highest_ = 0;
    for (const Estimate& difference : drawn) {
      if (is_off(difference)) continue;
      const double half_width = std::isfinite(difference.half_width) ? difference.half_width : 0;
      lowest_ = std::min(lowest_, factor_ * (difference.mean - half_width));
      highest_ = std::max(highest_, factor_ * (difference.mean + half_width));
    }
    lowest_ = std::max(lowest_, -most_);
    highest_ = std::min(highest_, most_);
    const double room = highest_ > lowest_ ? 0.08 * (highest_ - lowest_) : 1;
    lowest_ -= room;
    highest_ += room;
  }

  bool is_off(const Estimate& difference) const { return !(sign_ * factor_ * difference.mean < most_); }

  std::string script(const Findings& found) const {
    return fmt::format(
        "set xrange [{:.6g}:{:.6g}]\nset xlabel \"difference to {} in test {}\"\n"
        "set arrow from first 0, graph 0 to first 0, graph 1 nohead linecolor rgb grey dashtype 2\n",
        lowest_, highest_, reference, found.is_classifier() ? "accuracy, percentage points" : "loss");
  }

  /// The text at the edge in the row of the recipe, beside those of `before` other series; none where there
  /// is a point.
  std::string edge(std::size_t recipe, const Estimate& difference, int before = 0,
                   std::string_view color = "blue") const {
    constexpr double text_room = 0.16;  // of the panel's width
    if (!is_off(difference)) return {};
    const std::string text =
        std::isfinite(difference.mean) ? fmt::format("{:+.3g}", factor_ * difference.mean) : "no finite loss";
    const bool at_left = sign_ < 0;
    const double inset = 0.01 + text_room * before;
    return fmt::format("set label {} at graph {}, first {} {} textcolor rgb {} font ',12'\n",
                       gnuplot_string(at_left ? "← " + text : text + " →"), at_left ? inset : 1 - inset,
                       recipe, at_left ? "left" : "right", color);
  }

  /// Points with intervals, `offset` rows lower than the recipe.
  Curve dots(std::string table, std::string_view column, double offset, std::string_view style,
             std::string title = {}) const {
    return {.table = std::move(table),
            .where = fmt::format("{}*{}*column('{}') < {}", sign_, factor_, column, most_),
            .x = fmt::format("{}*column('{}')", factor_, column),
            .y = fmt::format("(column('rank') + {0})):({1}*low('{2}')):({1}*high('{2}')", offset, factor_,
                             column),
            .style = fmt::format("with xerrorbars {}", style),
            .title = std::move(title)};
  }

  /// The ends of a value's interval. A single seed has none: both ends are the value itself. As a number a missing end would take the
  /// point with it.
  static constexpr std::string_view functions =
      "low(name) = strcol(name.'_lower') eq 'nan' ? column(name) : column(name.'_lower')\n"
      "high(name) = strcol(name.'_upper') eq 'nan' ? column(name) : column(name.'_upper')\n";

 private:
  double factor_, most_, sign_;  ///< the sign of what is worse
  double lowest_, highest_;
};

struct RoleBar {
  std::string_view bytes;  ///< of policies.csv, an expression
  std::string_view color;
  std::string_view title;
};
constexpr std::array role_bars{
    RoleBar{"column('weights_bytes') + column('buffers_bytes')", "blue", "weights"},
    RoleBar{"column('master_weights_bytes')", "purple", "master weights"},
    RoleBar{"column('optimizer_state_bytes')", "green", "optimizer state"},
    RoleBar{"column('gradients_bytes')", "vermillion", "gradients"},
    RoleBar{"column('activations_bytes')", "grey", "activations"},
};

std::string bytes_bars() {
  std::string below = "0", script = "plot ";
  for (const RoleBar& bar : role_bars) {
    const std::string above = fmt::format("{} + {}", below, bar.bytes);
    const auto share = [](const std::string& bytes) {
      return fmt::format("(100*({})/column('reference_held_bytes'))", bytes);
    };
    script += fmt::format(
        "{}\"policies.csv\" using {}:(column('rank')):{}:{}:(column('rank') - 0.34):(column('rank') + 0.34) "
        "with boxxyerror linecolor rgb {} title \"{}\"",
        &bar == role_bars.begin() ? "" : ", \\\n  ", share(below), share(below), share(above), bar.color,
        bar.title);
    below = above;
  }
  return script + "\n";
}

Figure costs_figure(const Findings& found) {
  const std::vector<std::string> labels = names_of(found);
  const std::string column = fmt::format("{}_difference", found.quality());
  std::vector<Estimate> differences;
  for (std::size_t i = 0; i < found.recipes.size(); ++i)
    differences.push_back(found.difference(found.at_default(i), found.at_default(0)));
  const DifferenceAxis axis(found, differences);
  const int width = rows_width(labels, 2);
  std::string edges;
  for (std::size_t i = 0; i < differences.size(); ++i) edges += axis.edge(i, differences[i]);
  return {
      .name = "costs",
      .title = "What each recipe costs, and what it saves",
      .caption = fmt::format(
          "{} Left: means and 95 % t-intervals of the differences in pairs of the same seed. Right: bytes "
          "by role at the batch of {}, each role at its peak, without temporaries.",
          found.setting(), found.setup.budget().batch),
      .script = "set multiplot\n" + std::string(DifferenceAxis::functions) +
                rows_panel(found, 0, labels, width) + axis.script(found) + edges + "unset key\n" +
                plot({axis.dots("policies", column, 0, "linetype 1 linewidth 2 pointsize 1")}) +
                rows_panel(found, 1, labels, width) +
                fmt::format("set key at graph 0, screen {:.4f} left top horizontal Left reverse maxcols 2 "
                            "width -1\nset xrange [0:*]\nset xlabel \"bytes held, % of those of {}\"\n",
                            1 - 42.0 / figure_height(found), reference) +
                bytes_bars() + "unset multiplot\n",
      .width = width,
      .height = figure_height(found)};
}

/// Labels of the rows, recipe and batch: "O2, 63".
std::vector<std::string> batch_labels(const Findings& found) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < found.recipes.size(); ++i)
    labels.push_back(fmt::format("{}, {}", found.recipes[i].name, found.equal_bytes[i].batch.batch));
  return labels;
}

Figure batches_figure(const Findings& found) {
  constexpr double own_row = -0.14, same_row = 0.14;
  const std::vector<std::string> labels = batch_labels(found);
  std::vector<Estimate> drawn;  // of each recipe that has a batch both differences
  std::vector<std::size_t> recipes;
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    const EqualBytes& equal = found.equal_bytes[i];
    if (equal.batch.batch == 0) continue;
    const SeedGroup& grown = found.groups[equal.runs].group;
    recipes.push_back(i);
    drawn.push_back(found.difference(grown, found.at_default(0)));
    drawn.push_back(found.difference(grown, found.groups[equal.reference].group));
  }
  const DifferenceAxis axis(found, drawn);
  std::string edges;
  for (std::size_t i = 0; i < recipes.size(); ++i)
    edges += axis.edge(recipes[i], drawn[2 * i]) + axis.edge(recipes[i], drawn[2 * i + 1], 1, "orange");
  const std::string column = fmt::format("{}_difference", found.quality());
  const int batch = found.setup.budget().batch, width = std::max(rows_width(labels, 1), 720);
  return {
      .name = "batches",
      .title = "The largest batch in the same bytes",
      .caption = fmt::format(
          "{} Each recipe with the largest batch, named beside it, that it can hold in the {:.2f} MiB which "
          "{} takes at a batch of {}; {}. Against {} with {}, and with that same batch; means and 95 % "
          "t-intervals of the differences in pairs of the same seed.",
          found.setting(), static_cast<double>(found.budget_bytes) / 0x1p20, reference, batch,
          found.equal_bytes_rule(), reference, batch),
      .script =
          std::string(DifferenceAxis::functions) + rows_panel(found, 0, labels, width) +
          fmt::format("set rmargin at screen 0.97\nset key at graph 0, screen {:.4f} left top horizontal "
                      "Left reverse maxcols 2 width -1\n",
                      1 - 42.0 / figure_height(found)) +
          axis.script(found) + edges +
          plot({axis.dots("batches", column, own_row, "linetype 1 linewidth 2 pointsize 1",
                          fmt::format("against {} with a batch of {}", reference, batch)),
                axis.dots("batches", column + "_at_this_batch", same_row,
                          "linetype 5 linewidth 1.5 pointtype 6 pointsize 0.9",
                          fmt::format("against {} with the same batch", reference))}),
      .width = width,
      .height = figure_height(found)};
}

}  // namespace

void draw_figures(Run& run, const Findings& found) {
  run.figure(costs_figure(found));
  run.figure(operations_figure(found));
  run.figure(batches_figure(found));
}

}  // namespace experiments::opt_levels
