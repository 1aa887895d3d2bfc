#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/common/comparison.h"

namespace experiments {
namespace {

/// There are seven colours, the reference's black among them: of more groups both ends of the table are
/// drawn.
constexpr std::size_t first_curves = 4, last_curves = most_curves - first_curves;

bool is_drawn(const Comparison& comparison, std::size_t group) {
  return group < first_curves || group + last_curves >= comparison.groups().size();
}

std::string label_of(const SeedGroup& group) {
  return group.diverged_runs() == 0 ? group.strategy()
                                    : fmt::format("{} ({})", group.strategy(), group.divergence());
}

/// A column of the merged steps of a group's first seed.
Curve step_curve(const Comparison& comparison, const SeedGroup& group, std::string_view y,
                 std::string style) {
  return {.table = "steps",
          .where = fmt::format("{} && {} && {} && {}", column_is("model", comparison.model()),
                               column_is("policy", group.policy), column_is("scaler", group.scaler),
                               seed_is(comparison.first_seed())),
          .x = "column('step')",
          .y = std::string(y),
          .style = std::move(style)};
}

KeyColumn key_of(const Comparison& comparison) {
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < comparison.groups().size(); ++i) {
    if (is_drawn(comparison, i)) titles.push_back(label_of(comparison.groups()[i]));
  }
  return KeyColumn(titles);
}

std::string loss_script(const Comparison& comparison) {
  std::vector<Curve> losses, scales, skips;
  for (std::size_t i = 0; i < comparison.groups().size(); ++i) {
    if (!is_drawn(comparison, i)) continue;
    const SeedGroup& group = comparison.groups()[i];
    const std::string line =
        comparison.is_reference(group)
            ? "linecolor rgb black linewidth 2.5"
            : fmt::format("linetype {} linewidth 1.3", losses.size() + 1 - comparison.has_reference());
    losses.push_back(step_curve(comparison, group, "column('loss')", "with lines " + line));
    losses.back().title = label_of(group);
    scales.push_back(step_curve(comparison, group, "column('scale_log2')", "with steps " + line));
    if (group.results.front().value("skipped_steps") == 0) continue;
    skips.push_back(step_curve(comparison, group, "column('scale_log2')",
                               "with points pointtype 2 pointsize 0.7 linewidth 1.3 linecolor rgb black"));
    skips.back().where += " && " + column_is("decision", "skip");
    if (skips.size() == 1) skips.back().title = "skipped step";
  }
  scales.insert(scales.end(), skips.begin(), skips.end());
  const KeyColumn key = key_of(comparison);
  return "set multiplot\nset xlabel \"step\"\n" + panel(0, 2) + key.script() +
         "set offsets 0, 0, 0, 0\nset ylabel \"loss of the step's batch\"\n" + plot(losses) + panel(1, 2) +
         key.script() +
         "set offsets 0, 0, 1, 1\n"
         "set ylabel \"log_2 of the loss scale S\"\n" +
         plot(scales) + "unset multiplot\n";
}

/// Of the comparison's figure, in pixels: what the labels at the left take, and room enough for the texts above
/// and below the plot.
constexpr int dots_width = 600;

int tic_labels_width(const Comparison& comparison) {
  std::vector<std::string> labels;
  for (const SeedGroup& group : comparison.groups()) labels.push_back(label_of(group));
  return text_width(labels) + 45;
}

int comparison_width(const Comparison& comparison) {
  return tic_labels_width(comparison) + dots_width;
}

/// One dot and interval a row; of the reference there is no difference to draw, and of a group with diverged
/// runs no mean.
std::string comparison_script(const Comparison& comparison) {
  const bool against = comparison.has_reference(), is_classifier = comparison.is_classifier();
  const std::size_t first = against ? 1 : 0;
  std::vector<std::string> tics, drawn;
  for (std::size_t i = first; i < comparison.groups().size(); ++i) {
    const SeedGroup& group = comparison.groups()[i];
    tics.push_back(fmt::format("{} -{}", gnuplot_string(label_of(group)), i + 1));
    if (group.diverged_runs() == 0) drawn.push_back(fmt::format("column('rank') == {}", i + 1));
  }
  const std::string_view unit = !is_classifier ? "" : against ? ", percentage points" : ", %";
  const std::string_view bounds = against ? "difference" : "interval";
  const int factor = is_classifier ? 100 : 1;
  const bool has_intervals = comparison.seeds() > 1;
  std::string script = fmt::format(
      "set lmargin at screen {:.4f}\nset xlabel '{}test {}{}'\nset ytics noenhanced ({})\nset yrange "
      "[{}.5:{}.5]\n",
      static_cast<double>(tic_labels_width(comparison)) / comparison_width(comparison),
      against ? "difference to fp32 in " : "", is_classifier ? "accuracy" : "loss", unit,
      fmt::join(tics, ", "), -static_cast<int>(comparison.groups().size()), -static_cast<int>(first));
  if (drawn.empty()) {
    script += "set xrange [-1:1]\n";
    drawn.push_back("0");
  }
  if (against)
    script += "set arrow from first 0, graph 0 to first 0, graph 1 nohead linecolor rgb grey dashtype 2\n";
  return script +
         plot({{.table = "comparison",
                .where = fmt::format("{} && {} && ({})", column_is("model", comparison.model()),
                                     column_is("quantity", comparison.quality()), fmt::join(drawn, " || ")),
                .x = fmt::format("{}*column('{}')", factor, against ? "difference" : "mean"),
                .y = has_intervals
                         ? fmt::format("-column('rank')):({0}*column('{1}_lower')):({0}*column('{1}_upper')",
                                       factor, bounds)
                         : "-column('rank')",
                .style = fmt::format("with {} linetype 1 linewidth 2 pointsize 1.1",
                                     has_intervals ? "xerrorbars" : "points")}});
}

}  // namespace

Figure loss_figure(const Comparison& comparison) {
  const bool all = comparison.groups().size() <= first_curves + last_curves;
  const std::string which =
      all ? "" : fmt::format(", of the first {} and the last {} in the table", first_curves, last_curves);
  return {
      .name = "loss",
      .title = fmt::format("Training {}", comparison.setup().model_name()),
      .caption = fmt::format("{} Drawn is seed {}{}.", comparison.setting(), comparison.first_seed(), which),
      .script = loss_script(comparison),
      .width = key_of(comparison).figure_width(),
      .height = 720};
}

Figure comparison_figure(const Comparison& comparison) {
  return {.name = "comparison",
          .title = fmt::format("{} under each policy and scaler", comparison.setup().model_name()),
          .caption = comparison.setting(),
          .script = comparison_script(comparison),
          .width = comparison_width(comparison),
          .height = 150 + 30 * static_cast<int>(comparison.groups().size())};
}

}  // namespace experiments
