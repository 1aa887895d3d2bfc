#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/frame/curve_table.h"
#include "experiments/frame/figure.h"
#include "experiments/scaler_comparison/findings.h"
#include "sim/tensor/log2.h"

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
  std::vector<const Strategy*> drawn;
};

/// A number of every step of the run that fulfils the condition.
std::vector<Point> step_points(const TrainingRun& run, auto&& number, auto&& condition) {
  std::vector<Point> points;
  for (const sim::StepRecord& step : run.steps) {
    if (condition(step)) points.push_back({static_cast<double>(step.step), number(step)});
  }
  return points;
}

bool is_any(const sim::StepRecord&) {
  return true;
}
bool is_skipped(const sim::StepRecord& step) {
  return step.skipped();
}
bool is_measured(const sim::StepRecord& step) {
  return !step.twin.empty();
}

double loss_of(const sim::StepRecord& step) {
  return step.loss;
}
double scale_log2_of(const sim::StepRecord& step) {
  return sim::log2_of(step.scale);
}
double flushed_percent_of(const sim::StepRecord& step) {
  return 100 * sim::total_of(step.twin).fraction_flushed();
}

std::string run_name(const TrainingRun& run) {
  return fmt::format("{}, seed {}", run.label, run.seed);
}

std::string loss_script(const DrawnStrategies& strategies, const KeyColumn& key, CurveTable& table) {
  std::vector<Curve> curves, excesses;
  std::vector<std::vector<Point>> references;  // by seed
  std::vector<double> losses;
  std::size_t drawn = 0;
  for (const Strategy* s : strategies.drawn) {
    const std::string style =
        "with lines " + (s->is_reference() ? "linecolor rgb black linewidth 3" : line_style(drawn++));
    for (std::size_t seed = 0; seed < s->runs.size(); ++seed) {
      const TrainingRun& run = *s->runs[seed];
      const std::vector<Point> points = step_points(run, loss_of, is_any);
      curves.push_back(table.add("loss of " + run_name(run), points, style, seed == 0 ? s->label : ""));
      for (const Point& point : points) losses.push_back(point.y);
      if (s->is_reference())
        references.push_back(points);
      else
        excesses.push_back(table.add("loss over fp32's, %: " + run_name(run),
                                     excess_percent(points, references.at(seed)), style));
    }
  }
  return "set multiplot\nset xlabel \"step\"\n" + panel(0, 2) + key.script() +
         "set ylabel \"training loss of the step's batch\"\n" + log_axis(losses) + plot(curves) +
         panel(1, 2) + key.script() + "unset logscale y\nset yrange [*:*]\nset ytics autofreq\n" +
         "set ylabel \"loss over fp32's, %\"\n" + plot(excesses) + "unset multiplot\n";
}

/// The scales of the first seed of each strategy but the reference.
struct ScaleCurves {
  std::vector<Curve> scales;  ///< those of skipped steps last
  std::vector<Curve> flushed;
};

ScaleCurves scale_curves(const DrawnStrategies& strategies, CurveTable& table) {
  std::vector<Curve> scales, skips, flushed;
  for (const Strategy* s : strategies.drawn) {
    if (s->is_reference()) continue;
    const TrainingRun& run = *s->runs.front();
    const std::size_t linetype = scales.size() + 1;
    scales.push_back(table.add("log2 S of " + run_name(run), step_points(run, scale_log2_of, is_any),
                               fmt::format("with steps linetype {}", linetype), s->label));
    if (run.result.value("skipped_steps") > 0)
      skips.push_back(table.add("skipped steps of " + run_name(run),
                                step_points(run, scale_log2_of, is_skipped),
                                "with points pointtype 2 pointsize 0.8 linewidth 1.5 linecolor rgb black",
                                skips.empty() ? "skipped step" : ""));
    flushed.push_back(table.add("flushed, %: " + run_name(run),
                                step_points(run, flushed_percent_of, is_measured),
                                fmt::format("with linespoints linetype {} pointsize 0.4", linetype)));
  }
  scales.insert(scales.end(), skips.begin(), skips.end());
  return {.scales = std::move(scales), .flushed = std::move(flushed)};
}

std::string scale_script(const DrawnStrategies& strategies, const KeyColumn& key, int steps,
                         CurveTable& table) {
  const ScaleCurves curves = scale_curves(strategies, table);
  return fmt::format("set multiplot\nset xlabel \"step\"\nset xrange [0:{}]\n", steps) + panel(0, 2) +
         key.script() +
         "set ylabel \"log₂ of the loss scale S\"\nset yrange [*:*]\nset offsets 0, 0, 1, 1\n" +
         plot(curves.scales) + panel(1, 2) + key.script() +
         "set offsets 0, 0, 0, 0\nset ylabel \"flushed, % of non-zero values\"\nset yrange [0:*]\n" +
         plot(curves.flushed) + "unset multiplot\n";
}

}  // namespace

void draw_figures(Run& run, const Findings& found) {
  const DrawnStrategies strategies(found.strategies);
  const KeyColumn key(strategies.labels());
  CurveTable losses(run.record(), "loss"), scales(run.record(), "scale");
  run.figure({.name = "loss",
              .title = fmt::format("Training {} under each loss-scaling strategy", found.setup.model_name()),
              .caption = fmt::format(
                  "{} One line per seed; the thick black lines are the FP32 trajectories. Below the "
                  "difference to FP32 with the same seed on the same batches, of FP32's loss{}.{}{}",
                  found.setting(), stretch_text(static_cast<std::size_t>(found.setup.steps())),
                  found.puts_in_growth_interval()
                      ? " PyTorch's growth interval, 2000, would not move in so few steps."
                      : "",
                  strategies.note()),
              .script = loss_script(strategies, key, losses),
              .width = key.figure_width(),
              .height = 720});
  run.figure({.name = "scale",
              .title = "The loss scale, and what was flushed in spite of it",
              .caption = fmt::format("{} Seed {}. Flushed: non-zero in the FP32 twin and zero in the run.{}",
                                     found.setting(), found.options.training.seed, strategies.note()),
              .script = scale_script(strategies, key, found.setup.steps(), scales),
              .width = key.figure_width(),
              .height = 640});
}

}  // namespace experiments::scaler_comparison
