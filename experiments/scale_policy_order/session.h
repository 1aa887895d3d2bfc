#pragma once
/// A training run whose steps are the calls of a recipe, right or wrong.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scale_policy_order/recipes.h"
#include "experiments/training/training_setup.h"
#include "sim/loss_scaling/loss_scaler.h"
#include "sim/optimizers/optimizer.h"
#include "sim/precision/precision_policy.h"
#include "sim/schedules/schedule.h"
#include "sim/tape/gradients.h"
#include "sim/trainer/model_state.h"

namespace experiments::scale_policy_order {

/// Gradients as a framework keeps them in .grad: nothing in them says whether they carry a loss scale.
///
/// The simulator has two types for the two and only unscale() between them, so that the mistakes of this
/// experiment do not compile. This is the one place that passes the gradients of either type for those of the
/// other, to make them all the same.
class UntypedGradients {
 public:
  /// Adds, rounding once to the format of the gradient, or begins with these.
  void add(sim::ScaledGradients scaled);
  void add(const UntypedGradients& others);
  /// By fl32(1/S), as sim::unscale().
  void divide(float scale);
  bool empty() const { return values_.parameters.empty(); }
  /// The gradients as clipping and optimizers take them, whatever they are.
  sim::Gradients& values() { return values_; }

 private:
  void add_parameters(std::vector<sim::Tensor> fresh);

  sim::Gradients values_;
};

/// How a recipe is run.
struct Setting {
  std::string optimizer;  ///< with its options
  double max_norm = 1;
  double max_value = 1;
  std::size_t micro_batches = 4;    ///< of a recipe that accumulates
  std::size_t batch = 32;           ///< of a step; micro-batches share it
  int scale_log2 = 16;              ///< where S begins
  int too_high_scale_log2 = 32;     ///< likewise, of recipes that start too high
  int second_scale_below_log2 = 8;  ///< where the S of a second scaler begins, in octaves below the first's
  int growth_interval = 20;         ///< of S, by PyTorch's rule
  std::uint64_t steps = 0;          ///< of the run, for its schedule
  std::uint64_t warmup_steps = 0;   ///< of recipes with a schedule
  std::uint64_t seed = 0;
  /// The weights and what the optimizer computes in: binary32, as in training; or binary64, in which an
  /// update is what the rule gives and not what the rounding of a weight leaves of it.
  fp16::Format updates = fp16::binary32;
};

/// What a step did.
struct StepOutcome {
  std::vector<double> scales;  ///< S of every backward pass
  double divisor = 1;          ///< the last S that gradients were divided by
  /// The gradients' norm at the first clipping by norm, as they were then; NaN without one.
  double norm = std::numeric_limits<double>::quiet_NaN();
  int updates = 0;  ///< by the optimizer
  int unseen = 0;   ///< of these, with gradients that had been infinite or NaN
};

/// Under policy amp: FP16 where torch.autocast has it, weights and updates as the setting says.
class Session {
 public:
  /// Recipe and setup must outlive the session. A recipe of two losses needs a model that has them.
  Session(const TrainingSetup& setup, const Recipe& recipe, const Setting& setting);

  StepOutcome step();

  /// Takes weights and buffers over, but neither scaler nor optimizer.
  void follow(const Session& other);

  const sim::ModelState& state() const { return state_; }
  const sim::Optimizer& optimizer() const { return *optimizer_; }
  std::uint64_t applied() const { return applied_; }
  std::uint64_t skipped() const { return skipped_; }
  float scale() const { return scalers_.front().rule->scale(); }
  /// A weight is infinite or NaN, and so will it stay.
  bool has_diverged() const;

 private:
  struct Scaler {
    std::unique_ptr<sim::LossScaler> rule;
    bool is_unscaled = false;      ///< since its last update
    bool found_nonfinite = false;  ///< likewise
  };
  Scaler& scaler_of_loss(std::size_t loss) { return scalers_[scalers_.size() == 1 ? 0 : loss]; }
  std::size_t micro_batches() const { return recipe_.accumulates ? setting_.micro_batches : 1; }
  sim::RecordedStep record();
  void perform(const Call& call, const sim::RecordedStep& recorded, StepOutcome& outcome);
  void zero_gradients();
  void backward(std::size_t loss, const sim::RecordedStep& recorded, StepOutcome& outcome);
  void unscale(Scaler& scaler, StepOutcome& outcome);
  void divide(Scaler& scaler, StepOutcome& outcome);
  void clip(const sim::Clipping& clipping, StepOutcome& outcome);
  void step_if_finite(Scaler& scaler, StepOutcome& outcome);
  void optimizer_step(StepOutcome& outcome);
  void update(Scaler& scaler);
  double learning_rate() const;

  const TrainingSetup& setup_;
  const Recipe& recipe_;
  Setting setting_;
  sim::PrecisionPolicy policy_;
  sim::BatchSampler batches_;
  sim::ModelState state_;
  std::unique_ptr<sim::Optimizer> optimizer_;
  std::unique_ptr<sim::Schedule> schedule_;
  std::vector<Scaler> scalers_;
  UntypedGradients gradients_;
  UntypedGradients stash_;
  bool overflowed_ = false;  ///< they had been infinite or NaN
  std::uint64_t micro_batches_done_ = 0;
  std::uint64_t applied_ = 0;
  std::uint64_t skipped_ = 0;
};

}  // namespace experiments::scale_policy_order
