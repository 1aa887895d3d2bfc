#include <fmt/format.h>

#include <algorithm>

#include "experiments/frame/command_line.h"
#include "experiments/frame/parallel.h"
#include "experiments/frame/printable.h"
#include "experiments/scaler_comparison/findings.h"
#include "experiments/training/all_reduce_cost.h"
#include "experiments/training/cells.h"
#include "experiments/training/instruments.h"
#include "sim/loss_scaling/registry.h"
#include "sim/tensor/log2.h"

namespace experiments::scaler_comparison {
namespace {

names::Spec spec_of(const std::string& strategy) {
  return from_option("--scalers", [&] { return names::parse_spec(strategy); });
}

/// The scaler with --growth-interval put in where it has one and its own options do not say.
std::string scaler_of(const std::string& strategy, Regime regime, const Options& options) {
  constexpr const char* growth_interval = "growth_interval";
  if (strategy == reference) return regime == Regime::poisoned ? "static:scale=1" : "none";
  const names::Spec spec = spec_of(strategy);
  const names::NamedValues defaults = sim::options_of(sim::make_any_scaler(spec.name));
  const bool has_one =
      std::ranges::find(defaults, growth_interval, &names::NamedValues::value_type::first) != defaults.end();
  if (!has_one || spec.options.contains(growth_interval)) return strategy;
  return fmt::format("{}:{}={}", strategy, growth_interval, options.growth_interval);
}

/// Scalers of casts to FP8 need a policy that has such casts.
std::string policy_of(const std::string& strategy, const Options& options) {
  if (strategy == reference) return "fp32";
  const sim::ScalerRow& row = names::find_by_name(sim::scalers(), "scaler", spec_of(strategy).name);
  const bool casts = policy_from_option(options.policy).operands.narrows_per_tensor();
  return row.kind == sim::ScalerKind::tensor && !casts ? "fp8" : options.policy;
}

/// "delayed (fp8)": what a strategy is called where its policy is not the one that was asked for.
std::string label_of(const std::string& strategy, const Options& options) {
  const std::string policy = policy_of(strategy, options);
  const bool is_plain = strategy == reference || policy == options.policy;
  return is_plain ? strategy : fmt::format("{} ({})", strategy, policy);
}

/// The runs that have an all-reduce which rounds once more without.
void plan_controls(std::vector<TrainingRun>& runs) {
  const std::size_t count = runs.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (runs[i].strategy == reference) continue;
    TrainingRun control = runs[i];
    control.is_control = true;
    control.strategy += "+fp32_allreduce";
    control.label += ", all-reduced in FP32";
    runs.push_back(std::move(control));
  }
}

void plan_runs(Regime regime, const Options& options, std::vector<TrainingRun>& runs) {
  std::vector<std::string> names{std::string(reference)};
  names.insert(names.end(), options.scalers.begin(), options.scalers.end());
  for (const std::string& name : names) {
    for (int i = 0; i < options.seeds; ++i) {
      runs.push_back({.regime = regime,
                      .strategy = name,
                      .policy = policy_of(name, options),
                      .scaler = scaler_of(name, regime, options),
                      .label = label_of(name, options),
                      .seed = options.training.seed + static_cast<std::uint64_t>(i)});
    }
  }
}

RunChoice choice_of(const TrainingRun& run, const Options& options) {
  const sim::DataParallel parallel = options.parallel.choice();
  return {.policy = run.policy,
          .scaler = run.scaler,
          .seed = run.seed,
          .twin_every = run.strategy == reference ? 0 : static_cast<std::size_t>(options.twin_every),
          .statistics_every = static_cast<std::size_t>(options.statistics_every),
          .record_skips = true,
          .parallel = run.is_control || run.strategy == reference ? all_reduced_in_fp32(parallel) : parallel,
          .keep_in = fmt::format("{}{}-{}",
                                 run.regime == Regime::calm ? "" : fmt::format("{}-", name_of(run.regime)),
                                 in_file_name(run.label), run.seed)};
}

void reject_impossible(const std::vector<TrainingRun>& runs, const RegimeSetups& setups,
                       const Options& options, int threads) {
  const SideBySide bodies(runs_at_one_time(runs.size(), threads));
  for (const TrainingRun& run : runs) {
    if (run.seed == options.training.seed) setups.of(run.regime).trainer(choice_of(run, options));
  }
}

names::NamedValues values_of(const sim::Trainer& trainer, const std::vector<sim::StepRecord>& steps,
                             const TrainingSetup& setup) {
  const sim::Evaluation evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state());
  TwinSums twins;
  for (const sim::StepRecord& step : steps) twins.add(step);
  names::NamedValues values{{"final_loss", evaluation.loss}};
  if (setup.model().is_classifier()) values.emplace_back("final_accuracy", evaluation.accuracy);
  values.emplace_back("steps", steps.size());
  values.emplace_back("skipped_steps", std::ranges::count_if(steps, &sim::StepRecord::skipped));
  values.emplace_back("scaler_twins", scaler_twins_of(steps));
  values.emplace_back("final_scale_log2", sim::log2_of(trainer.scale()));
  for (const auto& mean : twins.means()) values.push_back(mean);
  return values;
}

void train(TrainingRun& run, const TrainingSetup& setup, const Options& options, Progress& progress) {
  sim::Trainer trainer = setup.trainer(choice_of(run, options));
  for (int step = 0; step < setup.steps(); ++step) {
    run.steps.push_back(
        trainer.step(loss_factor(run.regime, static_cast<std::size_t>(step), options.disturbances)));
    progress.tick();
    if (run.steps.back().decision == sim::Decision::abort) {
      run.result.abort_reason = trainer.abort_reason();
      break;
    }
  }
  progress.tick(static_cast<std::size_t>(setup.steps()) - run.steps.size());  // of a run that was ended
  run.sites = trainer.sites();
  run.parameters = trainer.state().specs;
  run.optimizer_options = trainer.optimizer().options();
  run.scaler_options = trainer.scaler_options();
  run.peak_tensor_bytes = peak_tensor_bytes(trainer.memory());
  run.result.values = values_of(trainer, run.steps, setup);
}

}  // namespace

bool Findings::puts_in_growth_interval() const {
  return std::ranges::any_of(strategies,
                             [](auto& s) { return !s.is_reference() && s.runs.front()->scaler != s.name; });
}

std::string Findings::setting() const {
  return fmt::format("{}, policy {}; {}, {}, twin every {} steps{}.",
                     setup.description({.parallel = options.parallel.choice()}), options.policy,
                     counted(setup.steps(), "step"), seeds_text(options.training.seed, options.seeds),
                     options.twin_every,
                     puts_in_growth_interval()
                         ? fmt::format(", growth intervals {} where not given", options.growth_interval)
                         : "");
}

std::vector<TrainingRun> trained_runs(const RegimeSetups& setups, const std::vector<Regime>& regimes,
                                      const Options& options, Run& run) {
  std::vector<TrainingRun> runs;
  for (const Regime regime : regimes) plan_runs(regime, options, runs);
  if (regimes == std::vector{Regime::calm} && rounds_in_all_reduce(options.parallel.choice()))
    plan_controls(runs);
  reject_impossible(runs, setups, options, run.threads());
  const auto steps = static_cast<std::size_t>(setups.of(regimes.front()).steps());
  Progress progress = run.progress("training", runs.size() * steps);
  parallel_for_each(runs.size(), run.threads(),
                    [&](std::size_t i) { train(runs[i], setups.of(runs[i].regime), options, progress); });
  return runs;
}

std::vector<Strategy> by_strategy(std::span<const TrainingRun> runs) {
  std::vector<Strategy> strategies;
  for (const TrainingRun& run : runs) {
    if (strategies.empty() || strategies.back().name != run.strategy) {
      strategies.push_back(
          {.name = run.strategy, .label = run.label, .group = {.policy = run.policy, .scaler = run.scaler}});
    }
    strategies.back().runs.push_back(&run);
    strategies.back().group.results.push_back(run.result);
  }
  return strategies;
}

}  // namespace experiments::scaler_comparison
