#pragma once
/// Global loss scalers: one factor S for a whole loss, chosen from summaries of the gradients.

#include <string>
#include <string_view>

#include "fp16/exponent_histogram.h"
#include "fp16/names.h"

namespace sim {

/// A step's twin: the same forward values, differentiated at S = 1 in the wide format of the twin.
struct TwinSummary {
  bool finite = true;  ///< no infinity or NaN in any of its gradients
  const fp16::ExponentHistogram* exponents =
      nullptr;  ///< of all its gradients, unscaled; never null in a summary
};

/// What a loss scaler may know of one step. All but the twin is of the SCALED gradients.
struct GradientSummary {
  bool found_nonfinite = false;  ///< in a weight gradient, as torch.amp.GradScaler checks
  float max_abs = 0;             ///< largest finite magnitude among the weight gradients
  /// Exponents of weight and activation gradients; present whenever the scaler says needs_exponents().
  const fp16::ExponentHistogram* exponents = nullptr;
  /// Null when no twin was run at this step; present whenever wants_twin() said so.
  const TwinSummary* twin = nullptr;
};

/// What becomes of a step: the optimizer may use its gradients; they are dropped and training goes on; the
/// rule itself ends the run.
enum class Decision { apply, skip, abort };

/// "apply", "skip", "abort".
constexpr std::string_view name_of(Decision decision) {
  switch (decision) {
    case Decision::apply:
      return "apply";
    case Decision::skip:
      return "skip";
    case Decision::abort:
      return "abort";
  }
  return {};
}

/// How often update() is called under gradient accumulation: once for all micro-batches, or after the
/// backward pass of each, which is then unscaled by its own S.
enum class UpdateGranularity { per_step, per_backward };

/// Chooses the factor S of the loss. A state machine without tensors: it sees a summary of each step's
/// gradients, says whether that step counts, and moves S for the next one. A step asks, in this order:
/// scale() before the backward pass, wants_twin() after it, update(), unscale_scale().
class LossScaler {
 public:
  virtual ~LossScaler() = default;

  virtual std::string_view name() const = 0;

  /// S for the coming step. Some of the published rules let it fall to 0 or rise to infinity.
  virtual float scale() const = 0;

  virtual bool needs_exponents() const { return false; }

  /// Whether wants_twin() may be true of a step. Under gradient accumulation each micro-batch then has a twin, so that the
  /// step's is the sum over all.
  virtual bool may_want_twin() const { return false; }

  /// Whether the summary of the step just made should bring a twin. What it is asked with must have the
  /// exponents if needs_exponents().
  virtual bool wants_twin(const GradientSummary&) const { return false; }

  /// Takes the summary of the step made with scale() and sets scale() for the next. Throws
  /// std::invalid_argument when it lacks what the scaler said it needs.
  Decision update(const GradientSummary& summary);

  /// What the gradients of the step just updated are divided by: the S of its backward pass, but for a rule
  /// that divides by another.
  virtual float unscale_scale() const { return used_scale_; }

  /// Why update() last said abort, in one line; empty when it did not.
  virtual std::string abort_reason() const { return {}; }

  virtual UpdateGranularity update_granularity() const { return UpdateGranularity::per_step; }

  /// How many losses of a model get a scaler of their own, each made with these same options; 1: their sum
  /// has one.
  virtual int num_losses() const { return 1; }

  /// Options in force, for the manifest.
  virtual names::NamedValues options() const = 0;

  /// All that the next decision depends on besides the options; empty for a rule without memory. A scaler of
  /// the same options that restores it continues exactly as this one would.
  virtual names::NamedValues state() const { return {}; }

  /// Throws std::invalid_argument when the entries are not those of state() or a value is impossible.
  virtual void restore(const names::NamedValues& state);

 protected:
  /// Throws std::invalid_argument that a step came without `what` unless `present`.
  void require(bool present, std::string_view what) const;

 private:
  virtual Decision decide(const GradientSummary& summary) = 0;

  float used_scale_ = 1;
};

}  // namespace sim
