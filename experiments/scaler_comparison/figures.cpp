#include "experiments/scaler_comparison/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/common/figure.h"

namespace experiments::scaler_comparison {
namespace {

/// In the order of the command line: all, or where the colours do not suffice fp32 and both ends of the
/// others by their final loss, one without a finite loss among the worst.
struct DrawnStrategies {
  static constexpr std::size_t best = 3, worst = most_curves - 1 - best;

  explicit DrawnStrategies(const std::vector<Strategy>& strategies) : all(strategies.size()) {
    for (const Strategy& s : strategies) drawn.push_back(&s);
    if (all <= most_curves) return;
    const auto loss = [](const Strategy* s) {
      const double mean = s->estimate("final_loss").mean;
      return std::isfinite(mean) ? mean : std::numeric_limits<double>::infinity();
    };
    std::ranges::stable_sort(drawn.begin() + 1, drawn.end(), {}, loss);
    drawn.erase(drawn.begin() + 1 + best, drawn.end() - worst);
    std::ranges::sort(drawn);  // they stand in one vector
  }

  std::vector<std::string> labels() const {
    std::vector<std::string> labels{"skipped step"};
    for (const Strategy* s : drawn) labels.push_back(s->label);
    return labels;
  }
  std::string note() const {
    if (drawn.size() == all) return {};
    return fmt::format(" Drawn are fp32, the {} scalers of the least final loss and the {} of the largest.",
                       best, worst);
  }

  std::size_t all;
  std::vector<const Strategy*> drawn = {};
};

/// One column of steps.csv over the steps of one run.
Curve step_curve(const TrainingRun& run, std::string_view y, std::string style,
                 std::string_view condition = "1") {
  return {.table = "steps",
          .where = fmt::format("{} && {} && {}", column_is("strategy", run.strategy), seed_is(run.seed),
                               condition),
          .x = "column('step')",
          .y = std::string(y),
          .style = std::move(style)};
}

std::string loss_script(const DrawnStrategies& strategies, const KeyColumn& key) {
  std::vector<Curve> curves;
  std::vector<double> losses;
  int linetype = 0;
  for (const Strategy* s : strategies.drawn) {
    const std::string style = s->is_reference()
                                  ? "with lines linecolor rgb black linewidth 3"
                                  : fmt::format("with lines linetype {} linewidth 1.3", ++linetype);
    for (const TrainingRun* run : s->runs) {
      curves.push_back(step_curve(*run, "column('loss')", style));
      if (run == s->runs.front()) curves.back().title = s->label;
      for (const sim::StepRecord& step : run->steps) losses.push_back(step.loss);
    }
  }
  return key.script() + "set xlabel \"step\"\nset ylabel \"training loss of the step's batch\"\n" +
         log_axis(losses) + plot(curves);
}

/// Of the first seed of each strategy but the reference.
struct ScaleCurves {
  std::vector<Curve> scales = {};  ///< those of skipped steps last
  std::vector<Curve> flushed = {};
};

ScaleCurves scale_curves(const DrawnStrategies& strategies) {
  std::vector<Curve> scales, skips, flushed;
  for (const Strategy* s : strategies.drawn) {
    if (s->is_reference()) continue;
    const TrainingRun& run = *s->runs.front();
    const std::size_t linetype = scales.size() + 1;
    scales.push_back(
        step_curve(run, "column('scale_log2')", fmt::format("with steps linetype {}", linetype)));
    scales.back().title = s->label;
    if (run.result.value("skipped_steps") > 0) {
      skips.push_back(step_curve(run, "column('scale_log2')",
                                 "with points pointtype 2 pointsize 0.8 linewidth 1.5 linecolor rgb black",
                                 "column('skipped') == 1"));
      if (skips.size() == 1) skips.back().title = "skipped step";
    }
    flushed.push_back(step_curve(run, "100 * column('fraction_flushed')",
                                 fmt::format("with linespoints linetype {} pointsize 0.4", linetype),
                                 "column('measured') == 1"));
  }
  scales.insert(scales.end(), skips.begin(), skips.end());
  return {.scales = std::move(scales), .flushed = std::move(flushed)};
}

std::string scale_script(const DrawnStrategies& strategies, const KeyColumn& key, int steps) {
  const ScaleCurves curves = scale_curves(strategies);
  return fmt::format("set multiplot\nset xlabel \"step\"\nset xrange [0:{}]\n", steps) + panel(0, 2) +
         key.script() +
         "set ylabel \"log_2 of the loss scale S\"\nset yrange [*:*]\nset offsets 0, 0, 1, 1\n" +
         plot(curves.scales) + panel(1, 2) + key.script() +
         "set offsets 0, 0, 0, 0\nset ylabel \"flushed, % of non-zero values\"\nset yrange [0:*]\n" +
         plot(curves.flushed) + "unset multiplot\n";
}

}  // namespace

void draw_figures(Run& run, const Findings& found) {
  const DrawnStrategies strategies(found.strategies);
  const KeyColumn key(strategies.labels());
  run.figure(
      {.name = "loss",
       .title = fmt::format("Training {} under each loss-scaling strategy", found.setup.model_name()),
       .caption = fmt::format("{} One line per seed; the thick black lines are the FP32 trajectories.{}{}",
                              found.setting(),
                              found.puts_in_growth_interval()
                                  ? " PyTorch's growth interval, 2000, would not move in so few steps."
                                  : "",
                              strategies.note()),
       .script = loss_script(strategies, key),
       .width = key.figure_width()});
  run.figure({.name = "scale",
              .title = "The loss scale, and what was flushed in spite of it",
              .caption = fmt::format("{} Seed {}. Flushed: non-zero in the FP32 twin and zero in the run.{}",
                                     found.setting(), found.options.training.seed, strategies.note()),
              .script = scale_script(strategies, key, found.setup.steps()),
              .width = key.figure_width(),
              .height = 640});
}

}  // namespace experiments::scaler_comparison
