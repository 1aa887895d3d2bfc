#pragma once
/// What becomes of the updates of training runs, against those that exact arithmetic would make, and what the runs come
/// to.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/frame/confidence.h"
#include "experiments/frame/experiment.h"
#include "experiments/master_weights/conditions.h"
#include "experiments/master_weights/options.h"
#include "experiments/master_weights/ratio_histogram.h"
#include "experiments/master_weights/storage.h"
#include "experiments/training/training_setup.h"
#include "fp16/exponent_histogram.h"
#include "sim/statistics/twin_comparison.h"
#include "sim/trainer/trainer.h"

namespace experiments::master_weights {

/// The updates of all parameters of a model in one step, or in several.
struct MeasuredUpdates {
  /// The changes that the stored weights made (run) against the exact ones (twin); flushed are the swallowed
  /// ones.
  sim::TwinComparison changes;
  fp16::ExponentHistogram exact_exponents;  ///< of the exact changes
  RatioHistogram ratios;                    ///< of weights that are normal numbers of their format

  MeasuredUpdates& operator+=(const MeasuredUpdates& other);
};

/// ||stored change|| / ||exact change||.
double norm_ratio(const sim::TwinComparison& changes);
/// How far the stored change goes along the exact one: <stored, exact> / <exact, exact>.
double progress_share(const sim::TwinComparison& changes);
/// The share of changes other than zero that is below 2^-24, FP16's smallest number.
double fraction_below_smallest_subnormal(const fp16::ExponentHistogram& changes);

/// One parameter before and after a step, and as exact arithmetic would leave it, in binary64.
struct ParameterStep {
  const sim::Tensor& before;
  const sim::Tensor& after;
  const sim::Tensor& exact;
};
MeasuredUpdates measure_updates(const ParameterStep& step);

/// The trainer's coming step, with what it did to the weights.
struct MeasuredStep {
  sim::StepRecord record;
  std::optional<MeasuredUpdates> updates;  ///< of a step that was applied
};

/// Lets the trainer, which has neither clipping nor several micro-batches, make a step. The exact change is
/// what its optimizer's rule gives in binary64 for the step's gradient, which is computed once more, and the
/// moments and weights stored before it.
MeasuredStep measured_step(sim::Trainer& trainer, const sim::Model& model, const sim::PrecisionPolicy& policy,
                           std::uint64_t seed);

/// The steps from one measured one (from the first) to before the next.
struct Period {
  std::size_t step = 0;  ///< the measured one
  double learning_rate = 0;
  double training_loss = 0;                    ///< mean over the steps
  sim::UpdateCounts updates = {};              ///< of all steps
  std::optional<sim::TwinComparison> changes;  ///< none where the measured step was skipped
};

struct TrainingRun {
  std::vector<Period> periods;
  fp16::ExponentHistogram exact_exponents;  ///< of all measured steps, as the ratios
  RatioHistogram ratios;
  sim::Evaluation evaluation;  ///< in FP32, of the weights as they are stored
};

struct RunSettings {
  WeightStorage storage;
  std::uint64_t seed = 0;
  int loss_scale_log2 = 0;  ///< of an FP16 model; in FP32 there is none
  int measure_every = 1;
};

/// Throws as TrainingSetup::trainer() does.
sim::Trainer trainer_of(const TrainingSetup& setup, const RunSettings& settings);

/// Each step is a tick of the progress.
TrainingRun train(const TrainingSetup& setup, const RunSettings& settings, Progress& progress);

/// What the runs with one storage under one condition came to, over the seeds.
struct Outcome {
  Estimate test_loss;
  Estimate test_accuracy;
  /// To the runs with FP32 masters, in pairs of the same seed.
  Estimate loss_difference;
  Estimate relative_loss;  ///< the ratio of the test losses, less 1
  Estimate accuracy_difference;

  sim::UpdateCounts updates = {};       ///< of all steps
  sim::UpdateCounts late_updates = {};  ///< of the periods of the last tenth, at least one
  // Means over the measured steps.
  double progress = 0;
  double norm_ratio = 0;
  double cosine = 0;
  fp16::ExponentHistogram exact_exponents = {};
  RatioHistogram ratios = {};

  bool diverges_alone = false;  ///< the mean loss is not finite, and that with masters is

  /// Whether the loss is worse than with masters beyond what the seeds explain.
  bool is_harmed() const {
    return diverges_alone || (relative_loss.is_judged() && relative_loss.lower() > 0);
  }
};

/// `with_masters` are the runs of the same seeds that keep FP32 masters.
Outcome outcome_of(std::span<const TrainingRun> runs, std::span<const TrainingRun> with_masters, int steps);

struct ConditionFindings {
  const Condition* condition;
  std::vector<std::vector<TrainingRun>> runs;  ///< by storage, then by seed
  std::vector<Outcome> outcomes;               ///< by storage

  /// The mean of the test losses over those with masters, less 1; infinite where the storage alone diverges.
  double relative_loss_increase(std::size_t storage) const;
  /// Share of the mean test accuracy with masters that is lost.
  double relative_accuracy_loss(std::size_t storage) const;
};

/// Every condition with every storage and seed; runs side by side.
std::vector<ConditionFindings> measure(const std::vector<std::unique_ptr<Condition>>& conditions,
                                       const Options& options, Run& run);

/// Ratios of the updates with a storage under all conditions.
RatioHistogram all_ratios(const std::vector<ConditionFindings>& findings, std::size_t storage);

/// Where the storage costs most: in accuracy, or else in loss.
const ConditionFindings& worst_case(const std::vector<ConditionFindings>& findings, std::size_t storage);

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict.
void report(Run& run, const std::vector<ConditionFindings>& findings, const Options& options);

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const std::vector<ConditionFindings>& findings, const std::string& setting);

}  // namespace experiments::master_weights
