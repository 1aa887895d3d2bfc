#pragma once
/// All training runs, and what they come to.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "experiments/frame/confidence.h"
#include "experiments/frame/experiment.h"
#include "experiments/master_weights/conditions.h"
#include "experiments/master_weights/measurement.h"
#include "experiments/master_weights/storage.h"
#include "experiments/training/training_setup.h"

namespace experiments::master_weights {

struct Options {
  TrainingOptions training{.model = "mlp:hidden1=128:hidden2=64", .batch = 64, .steps = 500};
  int seeds = 3;
  int measure_every = 25;
  int loss_scale_log2 = 10;
};

/// What the runs with one storage under one condition came to, over the seeds.
struct Outcome {
  Estimate test_loss;
  Estimate test_accuracy;
  /// To the runs with FP32 masters, in pairs of the same seed.
  Estimate loss_difference;
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
    return diverges_alone || (loss_difference.is_judged() && loss_difference.lower() > 0);
  }
};

/// `with_masters` are the runs of the same seeds that keep FP32 masters.
Outcome outcome_of(std::span<const TrainingRun> runs, std::span<const TrainingRun> with_masters, int steps);

struct ConditionFindings {
  const Condition* condition;
  std::vector<std::vector<TrainingRun>> runs;  ///< by storage, then by seed
  std::vector<Outcome> outcomes;               ///< by storage

  /// Of the mean test loss, over that with masters; infinite where the storage alone diverges.
  double relative_loss_increase(std::size_t storage) const;
  /// Share of the mean test accuracy with masters that is lost.
  double relative_accuracy_loss(std::size_t storage) const;
};

/// Every condition with every storage and seed; runs side by side.
std::vector<ConditionFindings> measure(const std::vector<std::unique_ptr<Condition>>& conditions,
                                       const Options& options, Run& run);

}  // namespace experiments::master_weights
