#pragma once
/// The parameters of a model with what its buffers hold, and passes over them: one recorded, or an evaluation.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/data/dataset.h"
#include "sim/models/model.h"
#include "sim/precision/precision_policy.h"
#include "sim/precision/unit_scaling.h"

namespace sim {

/// A forward pass with the gradient sites it opened.
struct RecordedStep {
  Tape tape;
  ForwardPass forward;
  /// What the tape borrows, where it does not borrow that of others.
  std::vector<Tensor> weights;
  std::unique_ptr<Buffers> buffers;
};

/// The parameters of a model and what its buffers hold.
struct ModelState {
  std::vector<ParameterSpec> specs;
  std::vector<Tensor> weights;  ///< in the order of specs
  Buffers buffers;
  std::optional<UnitScaling> unit_scaling;  ///< the parametrisation that the weights belong to

  /// The state in which a run begins: binary32, keyed by the seed. Under unit scaling weights are standard normal and biases
  /// 0.
  static ModelState initial(const Model& model, std::uint64_t seed,
                            const std::optional<UnitScaling>& unit_scaling = {});

  const UnitScaling* parametrisation() const { return unit_scaling ? &*unit_scaling : nullptr; }
};

std::vector<const Tensor*> pointers_to(std::span<const Tensor> tensors);

/// One forward pass of `model` over `batch` under `policy`. The weights are borrowed, in the policy's format
/// for the model. Training changes the buffers.
RecordedStep record_step(const Model& model, std::span<const ParameterSpec> specs,
                         std::span<const Tensor* const> weights, Buffers& buffers, const Batch& batch,
                         const PrecisionPolicy& policy, const TapeOptions& options = {});

/// One forward pass on a state, whose weights are rounded to the policy's format for the model and whose
/// parametrisation is taken over; the state stays as it is. Neither that nor its weights need outlive the step,
/// but a parametrisation must.
RecordedStep record_step(const Model& model, const ModelState& state, const Batch& batch,
                         const PrecisionPolicy& policy, TapeOptions options = {});

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  ///< share of right predictions; 0 for a model that is no classifier
};

/// Mean loss and accuracy over the whole test set, evaluated in FP32 on the given state.
Evaluation evaluate(const Model& model, const Dataset& dataset, const ModelState& state, int threads = 1);

}  // namespace sim
