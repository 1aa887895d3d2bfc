#pragma once
/// The training runs that scaler_comparison compares, and what they came to.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/scaler_comparison/options.h"
#include "experiments/scaler_comparison/regimes.h"
#include "experiments/training/cells.h"
#include "experiments/training/comparison.h"
#include "experiments/training/training_setup.h"
#include "sim/data/dataset.h"
#include "sim/trainer/trainer.h"

namespace experiments::scaler_comparison {

constexpr std::string_view reference = "fp32";

/// One training run of one strategy with one seed.
struct TrainingRun {
  Regime regime = Regime::calm;
  std::string strategy;  ///< `reference`, or a scaler with its options
  std::string policy;
  std::string scaler;  ///< with --growth-interval put in
  std::string label;   ///< the strategy, with its policy where that is not --policy
  std::uint64_t seed = 0;
  bool is_control =
      false;  ///< the strategy's run with an all-reduce in FP32, to tell what the other one costs
  std::vector<sim::StepRecord> steps;
  std::vector<sim::GradientSite> sites;
  std::vector<sim::ParameterSpec> parameters;
  names::NamedValues optimizer_options;
  names::NamedValues scaler_options;
  std::vector<std::pair<std::string, std::size_t>> peak_tensor_bytes;
  CellResult result = {};  ///< by the keys of the summary, of no file
};

/// All runs of one strategy.
struct Strategy {
  std::string name;
  std::string label;
  std::vector<const TrainingRun*> runs;
  SeedGroup group = {};  ///< of the same runs

  bool is_reference() const { return name == reference; }
  Estimate estimate(std::string_view key) const { return group.estimate(key); }
};

/// What there is to report.
struct Findings {
  const TrainingSetup& setup;
  const Options& options;
  std::span<const TrainingRun> runs;
  std::vector<Strategy> strategies;     ///< the reference first
  std::vector<Strategy> controls = {};  ///< of all strategies but the reference in their order, or none

  bool is_classifier() const { return setup.model().is_classifier(); }
  const Strategy& fp32() const { return strategies.front(); }
  /// Whether a scaler was given --growth-interval.
  bool puts_in_growth_interval() const;
  /// Network, data, policy, steps and seeds in a sentence.
  std::string setting() const;
};

/// In each regime a run of the reference and of every scaler with each seed, all side by side on the threads
/// of `run`; after those of calm training alone their controls, where the all-reduce rounds. The reference is
/// all-reduced in FP32. Where losses are poisoned the reference leaves out steps whose gradients are not finite. Throws
/// std::invalid_argument, before any has begun, where one of them cannot be.
std::vector<TrainingRun> trained_runs(const RegimeSetups& setups, const std::vector<Regime>& regimes,
                                      const Options& options, Run& run);

/// In the order of the runs, which must outlive it and are all of one regime.
std::vector<Strategy> by_strategy(std::span<const TrainingRun> runs);

/// An excess over FP32's loss, with its 95 % t-interval where there are enough seeds: "+1.2 [-0.3, 2.7] %".
std::string excess_text(const Estimate& relative_excess);

/// Into the manifest: the options in force of the optimizer and of every scaler.
void write_settings(RunRecord& record, const Findings& found);

/// For --help, of calm runs.
Outputs calm_outputs();
/// Writes tables, summary, figures and verdict of calm runs.
void report_calm(Run& run, const Findings& found);

/// Losses of all runs and their differences to FP32, and loss scale and flushed share of the first seed, from
/// loss.csv and scale.csv, which it writes. Of more strategies than can be told apart both ends by their final loss.
void draw_figures(Run& run, const Findings& found);

}  // namespace experiments::scaler_comparison
