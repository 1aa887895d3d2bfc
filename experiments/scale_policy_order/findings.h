#pragma once
/// What each recipe makes of the learning rate, step by step, and of the whole training.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/frame/confidence.h"
#include "experiments/frame/experiment.h"
#include "experiments/scale_policy_order/options.h"
#include "experiments/scale_policy_order/recipes.h"
#include "experiments/scale_policy_order/session.h"
#include "experiments/training/training_setup.h"

namespace experiments::scale_policy_order {

/// The least-squares factors of an update on right ones: those that minimise
/// ||update - factor * right||^2. Sums run over all elements in order, in binary64.
struct Projection {
  double factor;  ///< <update, right> / <right, right>: the effective learning rate over the right one
  double cosine;
};
Projection project(std::span<const double> update, std::span<const double> right);
/// The factors of two right updates together; NaN where these are parallel.
struct TwoFactors {
  double first;
  double second;
};
TwoFactors project(std::span<const double> update, std::span<const double> first,
                   std::span<const double> second);

/// A recipe and its right one at the same weights, the same batch and each in the state that its own gradients
/// have brought its optimizer and its scaler to. Ratios are NaN where the right one skips the step.
struct StepMeasurement {
  std::uint64_t step;
  double scale;  ///< S of its first backward pass
  double predicted;
  double factor;
  double cosine;
  double predicted_loss_ratio;  ///< second loss over first, of a model that has two
  double loss_ratio;            ///< where updates are linear in the gradient
  bool right_applied;
  bool applied;
  bool unseen;  ///< applied with gradients that had been infinite or NaN
};

struct RunResult {
  std::uint64_t seed;
  double loss;  ///< of the test set; NaN once a weight is infinite or NaN
  double accuracy;
  std::uint64_t applied;
  std::uint64_t skipped;
  std::uint64_t unseen;
  double final_scale;

  bool diverged() const;
};

struct Result {
  const Recipe* recipe;
  std::string optimizer;
  std::vector<StepMeasurement> steps;  ///< of the first seed
  std::vector<RunResult> runs;         ///< one for each seed

  std::vector<double> losses() const;
  std::vector<double> accuracies() const;
  std::size_t diverged_runs() const;
};

/// Smallest, middle and largest of the finite values; NaN without one.
struct Spread {
  double lowest = std::numeric_limits<double>::quiet_NaN();
  double median = lowest;
  double highest = lowest;
};
Spread spread(std::vector<double> values);

/// The spread of one column over the steps that the right recipe applies.
Spread spread(const Result& result, double StepMeasurement::*column);

/// The spread of the measured factor over the predicted one, in the same steps.
Spread agreement_of(const Result& result);

/// Every recipe with every optimizer, in this order.
struct Findings {
  std::vector<Result> results;

  const Result& of(std::string_view recipe, std::string_view optimizer) const;
  /// Its final loss less that of its right recipe, of the same seeds.
  Estimate difference(const Result& result) const;
};

/// One right recipe walks on; the others of its kind, and it itself, are set to its weights before each step
/// and their updates are formed in binary64.
std::vector<std::vector<StepMeasurement>> trace(const TrainingSetup& setup, const Recipe& right,
                                                std::span<const Recipe* const> recipes,
                                                const Setting& setting, Progress& progress);

RunResult train(const TrainingSetup& setup, const Recipe& recipe, const Setting& setting, Progress& progress);

/// How a recipe runs under these options, by their first seed.
Setting setting_of(const Recipe& recipe, const std::string& optimizer, const Options& options);

Findings measure(const TrainingSetup& setup, const TrainingSetup& detector, const Options& options, Run& run);

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict; `setting` is what was trained how.
void report(Run& run, const Findings& found, const Options& options, const std::string& setting);

/// Draws from steps.csv and recipes.csv.
void draw_figures(Run& run, const Findings& found, const Options& options, const std::string& setting);

}  // namespace experiments::scale_policy_order
