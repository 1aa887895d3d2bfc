#pragma once
/// What becomes of the updates of a training run, against those that exact arithmetic would make.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experiments/frame/progress.h"
#include "experiments/master_weights/ratio_histogram.h"
#include "experiments/master_weights/storage.h"
#include "experiments/training/training_setup.h"
#include "fp16/exponent_histogram.h"
#include "sim/statistics/twin_comparison.h"
#include "sim/trainer/trainer.h"

namespace experiments::master_weights {

/// Of all parameters of a model in one step, or in several.
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
/// Of changes other than zero the share below 2^-24, FP16's smallest number.
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
  double training_loss = 0;                         ///< mean over the steps
  sim::UpdateCounts updates = {};                   ///< of all steps
  std::optional<sim::TwinComparison> changes = {};  ///< none where the measured step was skipped
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

}  // namespace experiments::master_weights
