#pragma once
/// Whoever looks into a training step without taking part in it.

#include <optional>
#include <vector>

#include "sim/data/dataset.h"
#include "sim/loss_scaling/loss_scaler.h"
#include "sim/tape/gradients.h"
#include "sim/tape/tape.h"

namespace sim {

struct ModelState;
struct StepRecord;

/// What an observer needs of the backward passes of a step.
struct BackwardNeeds {
  bool rounding_counts = false;  ///< what rounding each gradient lost
  bool first_nonfinite = false;  ///< the first gradient that is not finite
  bool twin = false;             ///< the twin of each pass

  BackwardNeeds& operator|=(const BackwardNeeds& other) {
    rounding_counts |= other.rounding_counts;
    first_nonfinite |= other.first_nonfinite;
    twin |= other.twin;
    return *this;
  }
};

/// One backward pass, which has just ended; its tape is still there. Of several ranks those that this process computes
/// are shown, one after the other.
struct ObservedBackward {
  const Tape& tape;
  Variable loss;
  float mean_over;  ///< as in BackwardOptions
  float loss_scale;
  const SiteGradients& gradients;  ///< of this pass alone
  std::size_t rank = 0;
  std::size_t ranks = 1;  ///< that there are
};

/// One update of the loss scaler, and the scaled gradients it was made for: of one backward pass, or summed over
/// several. Of several ranks it is what a user of DistributedDataParallel sees on rank 0: parameter gradients are the means
/// over all ranks, as is their twin; tape, loss, batch and activation gradients are rank 0's own, of its part of the batch.
struct ObservedDecision {
  const Tape& tape;  ///< of the last of these passes, as is the loss
  Variable loss;
  float loss_scale;
  float mean_over;  ///< as in BackwardOptions
  const ScaledGradients& gradients;
  const std::optional<SiteGradients>& twin;  ///< where it was run
  const ModelState& state;                   ///< which the step began with
  const Batch& batch;                        ///< of the last of these passes
  std::size_t ranks = 1;                     ///< whose means the parameter gradients are
  bool found_nonfinite = false;              ///< what the scaler was told of the gradients
  /// Whether a rank's own gradient was not finite, where the ranks looked before they exchanged them.
  std::optional<bool> found_before_exchange = {};
};

/// Shown every step of the trainers it is registered with, and writes what it sees into the step's record. It changes
/// nothing else: a run that is looked into ends with the same bits.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  /// Asked before each backward pass of the step with this number, from 0.
  virtual BackwardNeeds needs(std::size_t step) const = 0;
  virtual void after_backward(const ObservedBackward&, StepRecord&) {}
  /// The record has the decision of all updates so far.
  virtual void after_decision(const ObservedDecision&, StepRecord&) {}
  /// Before the optimizer's step, if there is one.
  virtual void after_last_decision(StepRecord&) {}
};

}  // namespace sim
