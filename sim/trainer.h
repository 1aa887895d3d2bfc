#pragma once
/// The training loop of mixed precision, one step at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/gradients.h"
#include "sim/models/model.h"
#include "sim/optimizers/optimizer.h"
#include "sim/precision_policy.h"
#include "sim/statistics/twin_comparison.h"

namespace sim {

struct TrainerOptions {
  std::size_t batch = 128;
  std::uint64_t seed = 0;
  /// Every n-th step (from the first) is measured against its FP32 twin; 0 = never.
  std::size_t twin_every = 0;
};

struct StepRecord {
  std::size_t step = 0;
  float loss = 0;   ///< of this step's batch, before the update
  float scale = 1;  ///< S used in this step's backward
  bool skipped = false;
  /// Per gradient site of Trainer::sites(), at measured steps only.
  std::vector<TwinComparison> twin;
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  ///< share of test images classified right; 0 for a model that is no classifier
};

/// A forward pass with the gradient sites it opened. Weights are borrowed.
struct RecordedStep {
  Tape tape;
  ForwardPass forward;
};

/// One forward pass of `model` over `batch` under `policy`.
RecordedStep record_step(const Model& model, std::span<const ParameterSpec> parameters,
                         const std::vector<Tensor>& weights, const Batch& batch,
                         const PrecisionPolicy& policy);

/// Mean loss and accuracy over the whole test set, evaluated in FP32 on the given weights.
Evaluation evaluate(const Model& model, const Dataset& dataset, const std::vector<Tensor>& weights);

class Trainer {
 public:
  /// What is referred to must outlive the trainer.
  Trainer(const Model& model, const Dataset& dataset, const PrecisionPolicy& policy,
          std::unique_ptr<LossScaler> scaler, std::unique_ptr<Optimizer> optimizer,
          const TrainerOptions& options);

  StepRecord step();

  /// The batch that the next step() will take.
  Batch next_batch() { return batches_.batch(steps_done_); }

  /// Parameters in the policy's weight format: under a policy with master weights, these are the masters.
  const std::vector<Tensor>& weights() const { return weights_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  const LossScaler& scaler() const { return *scaler_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  /// The gradient sites of the model; empty before the first step.
  const std::vector<GradientSite>& sites() const { return sites_; }

 private:
  void apply(const Gradients& gradients);

  const Model& model_;
  const PrecisionPolicy& policy_;
  std::unique_ptr<LossScaler> scaler_;
  std::unique_ptr<Optimizer> optimizer_;
  TrainerOptions options_;
  BatchSampler batches_;
  std::vector<ParameterSpec> parameters_;
  std::vector<Tensor> weights_;
  std::vector<GradientSite> sites_;
  std::size_t steps_done_ = 0;
};

}  // namespace sim
