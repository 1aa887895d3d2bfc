/// Which loss-scaling strategy brings FP16 training to where FP32 gets?
///
/// The same network, seeds and batches under every strategy, side by side with an FP32 run (the trajectory).
/// Every n-th step is also measured against its backward twin: the same forward values, differentiated in
/// FP32.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "experiments/common/confidence.h"
#include "experiments/common/experiment.h"
#include "experiments/common/instruments.h"
#include "experiments/common/parallel.h"
#include "experiments/common/text_table.h"
#include "experiments/common/training_setup.h"
#include "sim/loss_scaling/registry.h"
#include "sim/statistics/log2.h"

namespace {

using experiments::Estimate;
using experiments::percent;

struct Options {
  experiments::TrainingOptions training{.model = "autoencoder"};
  std::string policy = "amp";
  std::vector<std::string> scalers{"none", "static", "dynamic", "adaptive"};
  int seeds = 3;
  int twin_every = 10;
  int statistics_every = 0;
  int growth_interval = 20;
};

constexpr std::string_view reference = "fp32";

/// One training run of one strategy with one seed.
struct TrainingRun {
  std::string strategy;  ///< `reference`, or a scaler with its options
  std::string policy;
  std::string scaler;  ///< with --growth-interval put in
  std::string label;   ///< the strategy, with its policy where that is not --policy
  std::uint64_t seed = 0;
  std::vector<sim::StepRecord> steps = {};
  std::string abort_reason = {};  ///< of a run that its scaler ended
  std::vector<sim::GradientSite> sites = {};
  std::vector<sim::ParameterSpec> parameters = {};
  sim::Evaluation evaluation = {};
  double final_scale_log2 = 0;
  sim::NamedValues optimizer_options = {};
  sim::NamedValues scaler_options = {};
  std::vector<std::pair<std::string, std::size_t>> peak_tensor_bytes = {};

  double skipped_steps() const {
    double count = 0;
    for (const sim::StepRecord& step : steps) count += step.skipped();
    return count;
  }

  /// Mean over the measured steps that were applied; NaN when there is none.
  double mean_measured(const std::function<double(const sim::TwinComparison&)>& quantity) const {
    double sum = 0, count = 0;
    for (const sim::StepRecord& step : steps) {
      if (step.twin.empty() || step.skipped()) continue;
      sum += quantity(sim::total_of(step.twin));
      ++count;
    }
    return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / count;
  }
};

/// All runs of one strategy.
struct Strategy {
  std::string name;
  std::string label;
  std::vector<const TrainingRun*> runs = {};

  std::vector<double> values(const std::function<double(const TrainingRun&)>& quantity) const {
    std::vector<double> values;
    for (const TrainingRun* run : runs) values.push_back(quantity(*run));
    return values;
  }
  Estimate over_seeds(const std::function<double(const TrainingRun&)>& quantity) const {
    return experiments::estimate(values(quantity));
  }
  Estimate mean_measured(const std::function<double(const sim::TwinComparison&)>& quantity) const {
    return over_seeds([&](const TrainingRun& r) { return r.mean_measured(quantity); });
  }
  std::vector<double> final_losses() const {
    return values([](const TrainingRun& r) { return r.evaluation.loss; });
  }
  Estimate final_loss() const { return experiments::estimate(final_losses()); }
  Estimate final_accuracy() const {
    return over_seeds([](const TrainingRun& r) { return r.evaluation.accuracy; });
  }
  Estimate steps() const {
    return over_seeds([](const TrainingRun& r) { return static_cast<double>(r.steps.size()); });
  }
  Estimate skipped_steps() const { return over_seeds(&TrainingRun::skipped_steps); }
  Estimate final_scale_log2() const { return over_seeds(&TrainingRun::final_scale_log2); }
  Estimate fraction_flushed() const { return mean_measured(&sim::TwinComparison::fraction_flushed); }
  Estimate norm_share_flushed() const { return mean_measured(&sim::TwinComparison::norm_share_flushed); }
  Estimate relative_error() const { return mean_measured(&sim::TwinComparison::relative_error); }
  std::size_t aborted_runs() const {
    const auto aborted = [](const TrainingRun* run) { return !run->abort_reason.empty(); };
    return static_cast<std::size_t>(std::ranges::count_if(runs, aborted));
  }
};

/// What there is to report.
struct Findings {
  const experiments::TrainingSetup& setup;
  const Options& options;
  const std::vector<TrainingRun>& runs;
  std::vector<Strategy> strategies;  ///< the reference first

  bool is_classifier() const { return setup.model().is_classifier(); }
  const Strategy& fp32() const { return strategies.front(); }
  bool puts_in_growth_interval() const {
    return std::ranges::any_of(strategies, [](const Strategy& s) {
      return s.name != reference && s.runs.front()->scaler != s.name;
    });
  }
  std::string seeds() const {
    const std::uint64_t first = options.training.seed;
    if (options.seeds == 1) return fmt::format("seed {}", first);
    return fmt::format("seeds {} to {}", first, first + static_cast<std::uint64_t>(options.seeds - 1));
  }
  std::string setting() const {
    return fmt::format("{}, policy {}; {} steps, {}, twin every {} steps{}.", setup.description(),
                       options.policy, setup.steps(), seeds(), options.twin_every,
                       puts_in_growth_interval()
                           ? fmt::format(", growth intervals {} where not given", options.growth_interval)
                           : "");
  }
};

bool has_growth_interval(std::string_view scaler) {
  const auto is_it = [](const auto& option) { return option.first == "growth_interval"; };
  return std::visit(
      [&](const auto& made) {
        if constexpr (requires { made->options(); }) {
          return std::ranges::any_of(made->options(), is_it);
        } else {
          return std::ranges::any_of(made.options(), is_it);
        }
      },
      sim::make_any_scaler(scaler));
}

/// The scaler with --growth-interval put in where it has one and its own options do not say.
std::string scaler_of(const std::string& strategy, const Options& options) {
  if (strategy == reference) return "none";
  const sim::Spec spec = sim::parse_spec(strategy);
  if (spec.options.contains("growth_interval") || !has_growth_interval(spec.name)) return strategy;
  return fmt::format("{}:growth_interval={}", strategy, options.growth_interval);
}

/// Scalers of casts to FP8 need a policy that has such casts.
std::string policy_of(const std::string& strategy, const Options& options) {
  if (strategy == reference) return "fp32";
  const sim::ScalerRow& row = sim::find_by_name(sim::scalers(), "scaler", sim::parse_spec(strategy).name);
  const bool casts = sim::make_precision_policy(options.policy).operands.narrows_per_tensor();
  return row.kind == sim::ScalerKind::tensor && !casts ? "fp8" : options.policy;
}

/// "delayed (fp8)": what a strategy is called where its policy is not the one that was asked for.
std::string label_of(const std::string& strategy, const Options& options) {
  const std::string policy = policy_of(strategy, options);
  const bool is_plain = strategy == reference || policy == options.policy;
  return is_plain ? strategy : fmt::format("{} ({})", strategy, policy);
}

experiments::RunChoice choice_of(const TrainingRun& run, const Options& options) {
  return {.policy = run.policy,
          .scaler = run.scaler,
          .seed = run.seed,
          .twin_every = run.strategy == reference ? 0 : static_cast<std::size_t>(options.twin_every),
          .statistics_every = static_cast<std::size_t>(options.statistics_every),
          .record_skips = true};
}

void train(TrainingRun& run, const experiments::TrainingSetup& setup, const Options& options,
           experiments::Progress& progress) {
  sim::Trainer trainer = setup.trainer(choice_of(run, options));
  for (int step = 0; step < setup.steps(); ++step) {
    run.steps.push_back(trainer.step());
    progress.tick();
    if (run.steps.back().decision == sim::Decision::abort) {
      run.abort_reason = trainer.abort_reason();
      break;
    }
  }
  progress.tick(static_cast<std::size_t>(setup.steps()) - run.steps.size());  // of a run that was ended
  run.optimizer_options = trainer.optimizer().options();
  run.scaler_options = trainer.scaler_options();
  run.sites = trainer.sites();
  run.parameters = trainer.state().specs;
  run.peak_tensor_bytes = experiments::peak_tensor_bytes(trainer.memory());
  run.evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state());
  run.final_scale_log2 = sim::log2_of(trainer.scale());
}

void write_summary(sim::RunRecord& record, const Findings& found) {
  for (const Strategy& s : found.strategies) {
    const auto write = [&](std::string_view key, const Estimate& value) {
      experiments::write_estimate(record, fmt::format("{}.{}", s.name, key), value);
    };
    write("final_loss", s.final_loss());
    if (found.is_classifier()) write("final_accuracy", s.final_accuracy());
    write("steps", s.steps());
    write("skipped_steps", s.skipped_steps());
    write("scaler_twins",
          s.over_seeds([](const TrainingRun& r) { return experiments::scaler_twins_of(r.steps); }));
    write("final_scale_log2", s.final_scale_log2());
    write("mean_fraction_flushed", s.fraction_flushed());
    write("mean_norm_share_flushed", s.norm_share_flushed());
    write("mean_relative_error", s.relative_error());
    record.summary(s.name + ".aborted_runs", s.aborted_runs());
    for (std::size_t i = 0; i < s.runs.front()->peak_tensor_bytes.size(); ++i) {
      std::size_t largest = 0;
      for (const TrainingRun* run : s.runs) largest = std::max(largest, run->peak_tensor_bytes[i].second);
      record.summary(fmt::format("{}.{}", s.name, s.runs.front()->peak_tensor_bytes[i].first), largest);
    }
  }
}

/// Under the names that their strategies have in tables, or in texts.
std::vector<experiments::InstrumentedRun> instrumented(const std::vector<TrainingRun>& runs,
                                                       std::string TrainingRun::*name) {
  std::vector<experiments::InstrumentedRun> result;
  for (const TrainingRun& run : runs)
    result.push_back({.strategy = run.*name,
                      .seed = run.seed,
                      .steps = run.steps,
                      .sites = run.sites,
                      .parameters = run.parameters});
  return result;
}

void write_runs(sim::RunRecord& record, const Findings& found) {
  sim::Table& table =
      record.table("runs", {"strategy", "policy", "scaler", "seed", "steps", "skipped_steps",
                            "final_scale_log2", "final_loss", "final_accuracy", "abort_reason"});
  for (const TrainingRun& run : found.runs) {
    const double accuracy =
        found.is_classifier() ? run.evaluation.accuracy : std::numeric_limits<double>::quiet_NaN();
    table.row({run.strategy, run.policy, run.scaler, run.seed, run.steps.size(), run.skipped_steps(),
               run.final_scale_log2, run.evaluation.loss, accuracy, run.abort_reason});
  }
}

void write_tables(sim::RunRecord& record, const Findings& found) {
  const std::vector<experiments::InstrumentedRun> runs = instrumented(found.runs, &TrainingRun::strategy);
  write_runs(record, found);
  experiments::write_steps(record, runs);
  experiments::write_layers(record, runs);
  experiments::write_skips(record, runs);
  experiments::write_parameters(record, runs);
  if (found.options.statistics_every > 0) experiments::write_statistics(record, runs);
}

void write_settings(sim::RunRecord& record, const Findings& found) {
  experiments::record_settings(record, "optimizer", found.options.training.optimizer,
                               found.runs.front().optimizer_options);
  for (const Strategy& s : found.strategies)
    experiments::record_settings(record, "scaler", s.name, s.runs.front()->scaler_options);
}

/// In the order of the command line: all, or where the colours do not suffice fp32 and both ends of the others
/// by their final loss, one without a finite loss among the worst.
struct DrawnStrategies {
  static constexpr std::size_t best = 3, worst = experiments::most_curves - 1 - best;

  explicit DrawnStrategies(const std::vector<Strategy>& strategies) : all(strategies.size()) {
    for (const Strategy& s : strategies) drawn.push_back(&s);
    if (all <= experiments::most_curves) return;
    const auto loss = [](const Strategy* s) {
      const double mean = s->final_loss().mean;
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

/// One column of steps.csv over the steps of one strategy and seed.
experiments::Curve step_curve(std::string_view strategy, std::uint64_t seed, std::string_view y,
                              std::string style, std::string_view condition = "1") {
  return {.table = "steps",
          .where = fmt::format("{} && column('seed') == {} && {}",
                               experiments::column_is("strategy", strategy), seed, condition),
          .x = "column('step')",
          .y = std::string(y),
          .style = std::move(style)};
}

std::string loss_script(const DrawnStrategies& strategies, const experiments::KeyColumn& key) {
  std::vector<experiments::Curve> curves;
  std::vector<double> losses;
  int linetype = 0;
  for (const Strategy* s : strategies.drawn) {
    const std::string style = s->name == reference
                                  ? "with lines linecolor rgb black linewidth 3"
                                  : fmt::format("with lines linetype {} linewidth 1.3", ++linetype);
    for (const TrainingRun* run : s->runs) {
      curves.push_back(step_curve(s->name, run->seed, "column('loss')", style));
      if (run == s->runs.front()) curves.back().title = s->label;
      for (const sim::StepRecord& step : run->steps) losses.push_back(step.loss);
    }
  }
  return key.script() + "set xlabel \"step\"\nset ylabel \"training loss of the step's batch\"\n" +
         experiments::log_axis(losses) + experiments::plot(curves);
}

std::string scale_script(const DrawnStrategies& strategies, const experiments::KeyColumn& key, int steps) {
  std::vector<experiments::Curve> scales, skips, flushed;
  for (const Strategy* strategy : strategies.drawn) {
    const Strategy& s = *strategy;
    if (s.name == reference) continue;
    const std::uint64_t seed = s.runs.front()->seed;
    const std::size_t linetype = scales.size() + 1;
    scales.push_back(
        step_curve(s.name, seed, "column('scale_log2')", fmt::format("with steps linetype {}", linetype)));
    scales.back().title = s.label;
    if (s.runs.front()->skipped_steps() > 0) {
      skips.push_back(step_curve(s.name, seed, "column('scale_log2')",
                                 "with points pointtype 2 pointsize 0.8 linewidth 1.5 linecolor rgb black",
                                 "column('skipped') == 1"));
      if (skips.size() == 1) skips.back().title = "skipped step";
    }
    flushed.push_back(step_curve(s.name, seed, "100 * column('fraction_flushed')",
                                 fmt::format("with linespoints linetype {} pointsize 0.4", linetype),
                                 "column('measured') == 1"));
  }
  scales.insert(scales.end(), skips.begin(), skips.end());
  return fmt::format("set multiplot\nset xlabel \"step\"\nset xrange [0:{}]\n", steps) +
         experiments::panel(0, 2) + key.script() +
         "set ylabel \"log_2 of the loss scale S\"\nset yrange [*:*]\nset offsets 0, 0, 1, 1\n" +
         experiments::plot(scales) + experiments::panel(1, 2) + key.script() +
         "set offsets 0, 0, 0, 0\nset ylabel \"flushed, % of non-zero values\"\nset yrange [0:*]\n" +
         experiments::plot(flushed) + "unset multiplot\n";
}

void draw_figures(experiments::Run& run, const Findings& found) {
  const DrawnStrategies strategies(found.strategies);
  const experiments::KeyColumn key(strategies.labels());
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

/// "0.046953 ± 0.00066"; large losses by a power of ten.
std::string loss_text(const Estimate& loss) {
  if (!std::isfinite(loss.mean)) return "-";
  std::string text = fmt::format("{:#.5g}", loss.mean);
  if (std::isfinite(loss.half_width)) text += fmt::format(" ± {:.2g}", loss.half_width);
  return text;
}

/// How far a strategy's mean final loss lies from that of FP32, in per cent of the latter. Of enough seeds with
/// the 95 % t-interval of the differences, which are of pairs with the same seed: "+1.2 [-0.3, 2.7] %".
std::string excess(const Strategy& strategy, const Strategy& fp32) {
  const Estimate difference = experiments::estimate_difference(fp32.final_losses(), strategy.final_losses());
  const double percent = 100 / fp32.final_loss().mean;
  if (!std::isfinite(percent * difference.mean)) return "-";
  std::string text = fmt::format("{:+.1f}", percent * difference.mean);
  if (difference.is_judged())
    text += fmt::format(" [{:.1f}, {:.1f}]", percent * difference.lower(), percent * difference.upper());
  return text + " %";
}

std::string outcome(const Strategy& s, const Strategy& fp32) {
  const double loss = s.final_loss().mean;
  if (!std::isfinite(loss)) return fmt::format("{} without a finite loss", s.label);
  const std::string text = fmt::format("{} at {:#.5g}", s.label, loss);
  return std::isfinite(fp32.final_loss().mean) ? fmt::format("{} ({})", text, excess(s, fp32)) : text;
}

/// "500"; of runs that their scaler ended "5, ended", or "252, 1 of 2 ended".
std::string steps_made(const Strategy& s) {
  std::string text = fmt::format("{:.4g}", s.steps().mean);
  const std::size_t aborted = s.aborted_runs();
  if (aborted == 0) return text;
  return text +
         (aborted == s.runs.size() ? ", ended" : fmt::format(", {} of {} ended", aborted, s.runs.size()));
}

experiments::TextTable verdict_table(const Findings& found) {
  experiments::TextTable table{.columns = {"strategy", "final loss"}, .rows = {}};
  if (found.is_classifier()) table.columns.push_back("accuracy, %");
  table.columns.insert(table.columns.end(), {"against fp32", "steps", "skipped", "final S", "flushed",
                                             "of the norm", "relative error"});
  for (const Strategy& s : found.strategies) {
    const auto unless_reference = [&](std::string text) { return s.name == reference ? "-" : text; };
    std::vector<std::string> row{s.label, loss_text(s.final_loss())};
    if (found.is_classifier()) row.push_back(with_interval(s.final_accuracy(), 100, 2));
    row.push_back(unless_reference(excess(s, found.fp32())));
    row.push_back(steps_made(s));
    row.push_back(unless_reference(fmt::format("{:.4g}", s.skipped_steps().mean)));
    row.push_back(unless_reference(fmt::format("2^{:.4g}", s.final_scale_log2().mean)));
    row.push_back(percent(s.fraction_flushed().mean));
    row.push_back(percent(s.norm_share_flushed().mean));
    const double relative_error = s.relative_error().mean;
    row.push_back(std::isfinite(relative_error) ? fmt::format("{:.2g}", relative_error) : "-");
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Which tensor vanishes at S = 1, or that none does.
std::string vanishing_sentence(const experiments::InstrumentedRun& run) {
  const auto measured =
      std::ranges::find_if(run.steps, [](const sim::StepRecord& step) { return !step.twin.empty(); });
  if (measured == run.steps.end()) return {};
  const auto vanishes = [](const sim::TwinComparison& site) {
    return !site.is_rounding_noise && site.nonzero > 0 && site.octaves_alive() <= 0;
  };
  if (std::ranges::any_of(measured->twin, vanishes)) return experiments::weakest_layer_sentence(run);
  return fmt::format("At step {} and S = 1 no gradient tensor's largest value is below 2^-25.",
                     measured->step);
}

void write_verdict(sim::RunRecord& record, const Findings& found) {
  const std::vector<experiments::InstrumentedRun> runs = instrumented(found.runs, &TrainingRun::label);
  const auto say = [&](const std::string& paragraph) {
    if (!paragraph.empty()) record.verdict(paragraph);
  };
  std::vector<std::string> outcomes;
  for (const Strategy& s : found.strategies) {
    if (s.name != reference) outcomes.push_back(outcome(s, found.fp32()));
  }
  const Estimate fp32_loss = found.fp32().final_loss();
  record.verdict(fmt::format("FP32 {}. Under {}, by scaler: {}.",
                             std::isfinite(fp32_loss.mean) ? "reaches a test loss of " + loss_text(fp32_loss)
                                                           : "ends without a finite test loss",
                             found.options.policy, fmt::join(outcomes, ", ")));
  const auto first_scaled =
      std::ranges::find_if(runs, [](const auto& run) { return run.strategy != reference; });
  say(vanishing_sentence(*first_scaled));
  say(experiments::skips_paragraph(runs));
  say(experiments::scaler_twins_sentence(runs));
  record.verdict(verdict_table(found).text());
  for (const TrainingRun& run : found.runs) {
    if (run.abort_reason.empty()) continue;
    record.verdict(experiments::abort_sentence(run.label, run.seed, run.steps.size(), run.abort_reason));
  }
  record.verdict(found.setting() + (found.options.seeds > 1 ? " ±: 95 % t-intervals over the seeds." : ""));
}

std::vector<TrainingRun> plan_runs(const Options& options) {
  std::vector<std::string> names{std::string(reference)};
  names.insert(names.end(), options.scalers.begin(), options.scalers.end());
  std::vector<TrainingRun> runs;
  for (const std::string& name : names) {
    for (int i = 0; i < options.seeds; ++i) {
      runs.push_back({.strategy = name,
                      .policy = policy_of(name, options),
                      .scaler = scaler_of(name, options),
                      .label = label_of(name, options),
                      .seed = options.training.seed + static_cast<std::uint64_t>(i)});
    }
  }
  return runs;
}

std::vector<Strategy> group(const std::vector<TrainingRun>& runs) {
  std::vector<Strategy> strategies;
  for (const TrainingRun& run : runs) {
    if (strategies.empty() || strategies.back().name != run.strategy)
      strategies.push_back({.name = run.strategy, .label = run.label});
    strategies.back().runs.push_back(&run);
  }
  return strategies;
}

/// What is wrong with one of the runs is said before any has begun.
void reject_impossible(const std::vector<TrainingRun>& runs, const experiments::TrainingSetup& setup,
                       const Options& options) {
  for (const TrainingRun& run : runs) {
    if (run.seed == options.training.seed) setup.trainer(choice_of(run, options));
  }
}

void run(experiments::Run& run, Options& options) {
  const experiments::TrainingSetup setup(options.training);
  std::vector<TrainingRun> runs = plan_runs(options);
  reject_impossible(runs, setup, options);
  {
    experiments::Progress progress =
        run.progress("training", runs.size() * static_cast<std::size_t>(setup.steps()));
    experiments::parallel_for_each(runs.size(), run.threads(),
                                   [&](std::size_t i) { train(runs[i], setup, options, progress); });
  }
  const Findings found{.setup = setup, .options = options, .runs = runs, .strategies = group(runs)};
  write_settings(run.record(), found);
  write_tables(run.record(), found);
  write_summary(run.record(), found);
  draw_figures(run, found);
  write_verdict(run.record(), found);
}

experiments::Program program() {
  return {.name = "scaler_comparison",
          .question = "Which loss-scaling strategy brings FP16 training to where FP32 gets?",
          .example = "scaler_comparison --model mlp --scalers none,dynamic --steps 300 --out results/mlp",
          .summary_keys = {
              {"<strategy>.final_loss", "mean over the test set after the last step, in FP32"},
              {"<strategy>.final_accuracy", "likewise, classifiers only"},
              {"<strategy>.steps", "made; fewer than asked for where the scaler ended the run"},
              {"<strategy>.skipped_steps", "of these, steps whose update was left out"},
              {"<strategy>.scaler_twins", "twins that the scaler asked for, a backward pass each"},
              {"<strategy>.final_scale_log2", "log2 S after the last step"},
              {"<strategy>.mean_fraction_flushed",
               "twin non-zero and run zero, over the twin's non-zero; mean over measured, applied steps, nan "
               "without any"},
              {"<strategy>.mean_norm_share_flushed", "norm of these over the twin's, likewise"},
              {"<strategy>.mean_relative_error", "||run/S - twin|| / ||twin||, likewise"},
              {"<strategy>.aborted_runs", "runs that their scaler ended"},
              {"<strategy>.peak_tensor_bytes", "the most that tensors took at one time, without twins"},
              {"<strategy>.peak_tensor_bytes_<role>",
               "likewise of weights, master_weights, optimizer_state, activations, gradients, buffers, "
               "temporaries"},
              {"<key>_std, _lower, _upper",
               "of the means over several seeds: sample standard deviation, 95 % t-interval"}}};
}

void bind(experiments::CommandLine& command_line, Options& options) {
  options.training.bind(command_line, 20);
  command_line.add_policy(options.policy);
  command_line.add_scalers(options.scalers);
  command_line.add_seeds(options.seeds);
  command_line.add_twin_every(options.twin_every, 5);
  command_line.add("--statistics-every", options.statistics_every,
                   "steps from one histogram of every gradient to the next; 0: never",
                   {.minimum = 0, .maximum = 1'000'000});
  command_line.add("--growth-interval", options.growth_interval,
                   "of every scaler that has one and is not given its own; the originals' 1000 or 2000 would "
                   "not move in so short a run",
                   {.minimum = 1});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return experiments::run(
      argc, argv,
      {.program = program(),
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body = [&](experiments::Run& r) { run(r, options); }});
}
