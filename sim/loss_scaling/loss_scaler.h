#pragma once

#include <string_view>

#include "sim/options.h"
#include "sim/statistics/exponent_histogram.h"

namespace sim {

/// What a loss scaler may know about one step's SCALED gradients.
struct GradientSummary {
  bool found_nonfinite = false;  ///< in a weight gradient, as torch.amp.GradScaler checks
  /// Of weight and activation gradients; present whenever the scaler says needs_exponents().
  const ExponentHistogram* exponents = nullptr;
};

/// Whether the optimizer may use this step's gradients.
enum class Decision { apply, skip };

/// Chooses the factor S of the loss. A state machine without tensors: it sees a summary of each step's
/// gradients, says whether that step counts, and moves S for the next one.
class LossScaler {
 public:
  virtual ~LossScaler() = default;

  virtual std::string_view name() const = 0;

  /// S for the coming step.
  virtual float scale() const = 0;

  /// Takes the summary of the step made with scale() and sets scale() for the next.
  virtual Decision update(const GradientSummary& summary) = 0;

  virtual bool needs_exponents() const { return false; }

  /// Options in force, for the manifest.
  virtual NamedValues options() const = 0;

  /// All that the next decision depends on besides the options; empty for a rule without memory. A scaler of
  /// the same options that restores it continues exactly as this one would.
  virtual NamedValues state() const { return {}; }

  /// Throws std::invalid_argument when the entries are not those of state() or a value is impossible.
  virtual void restore(const NamedValues& state) { state_from<NoState>(state); }

 private:
  struct NoState {
    static constexpr std::string_view subject = "scaler without memory";
    static void visit(auto&, auto&&) {}
  };
};

}  // namespace sim
