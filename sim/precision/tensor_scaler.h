#pragma once
/// Per-tensor scalers: the scale with which one tensor is cast to a narrow format.

#include <span>
#include <string_view>
#include <vector>

#include "fp16/format.h"
#include "fp16/names.h"

namespace sim {

/// Chooses the scale of each cast to a format too narrow for unscaled numbers, such as FP8: x * scale is
/// rounded into the format, saturating, and the result stands for itself / scale. A state machine without
/// tensors; one object serves all tensors of a run, told apart by name.
class TensorScaler {
 public:
  virtual ~TensorScaler() = default;

  virtual std::string_view name() const = 0;

  /// The scale of a cast of `tensor`, whose largest magnitude is `max_abs`, to `format`: positive and finite.
  /// A tensor keeps its format; it may be cast more than once in a step.
  virtual float scale(std::string_view tensor, const fp16::Format& format, float max_abs) = 0;

  /// The largest magnitudes of this step so far on which later scales depend, of each tensor in a fixed order: where
  /// others cast other parts of the same tensors, all go on with the largest of all.
  virtual std::vector<float> step_maxima() const { return {}; }
  virtual void set_step_maxima(std::span<const float>) {}

  /// After the backward pass of a step, or of the last of its micro-batches; skipped steps count too.
  virtual void end_step() = 0;

  /// Options in force, for the manifest.
  virtual names::NamedValues options() const = 0;

  /// All that the next scale depends on besides the options, as "TENSOR/entry". A scaler of the same options
  /// that restores it continues exactly as this one would.
  virtual names::NamedValues state() const = 0;

  /// Throws std::invalid_argument when the entries are not those of state() or a value is impossible.
  virtual void restore(const names::NamedValues& state) = 0;
};

}  // namespace sim
