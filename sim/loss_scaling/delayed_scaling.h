#pragma once

#include <deque>

#include "sim/loss_scaling/keyed_state.h"
#include "sim/precision/tensor_scaler.h"

namespace sim {

struct DelayedScalingOptions {
  int margin = 0;                  ///< octaves kept free below the largest number of the format
  int amax_history_length = 1024;  ///< steps whose largest magnitude counts, the last one included
  bool use_most_recent = false;    ///< look at the last step only ("most_recent" in place of "max")
  bool rolls_zero_amax = false;    ///< a step in which a tensor was all zero, or not cast, enters its history

  static constexpr std::string_view subject = "scaler 'delayed'";
  static void visit(auto& self, auto&& field) {
    field("margin", self.margin, names::closed_interval(-24, 24));
    field("amax_history_length", self.amax_history_length, names::closed_interval(1, 1'000'000));
    field("use_most_recent", self.use_most_recent, names::closed_interval(0, 1));
    field("rolls_zero_amax", self.rolls_zero_amax, names::closed_interval(0, 1));
  }
};

/// Transformer Engine's DelayedScaling. The scale of a tensor is (largest number of its format) * 2^-margin /
/// amax, where amax is the largest magnitude seen in the last amax_history_length steps BEFORE this one: what
/// is cast now counts from the next step on, and may saturate. In its first step a tensor has the scale 1.
///
/// At the end of a step, for an amax that is 0 or infinite the scale stays as it is (so that one infinity
/// holds it for as long as the history remembers); a quotient beyond binary32 becomes its largest number. A
/// NaN among the magnitudes is ignored, as by the kernels that measure them. The quotient is rounded once, in
/// binary32.
///
/// Source: NVIDIA/TransformerEngine transformer_engine/common/recipe/delayed_scaling.cu, the bulk update (the
/// default here) and the single one (rolls_zero_amax).
class DelayedScaling final : public TensorScaler {
 public:
  using Options = DelayedScalingOptions;

  /// Throws std::invalid_argument for an option outside its interval.
  explicit DelayedScaling(const Options& options = {}) : options_(names::checked(options)) {}

  std::string_view name() const override { return "delayed"; }
  float scale(std::string_view tensor, const fp16::Format& format, float max_abs) override;
  std::vector<float> step_maxima() const override;
  void set_step_maxima(std::span<const float> maxima) override;
  void end_step() override;
  names::NamedValues options() const override { return names::named_values(options_); }
  names::NamedValues state() const override;
  void restore(const names::NamedValues& state) override;

 private:
  struct Head {
    float scale = 1;
    float format_max = 1;  // largest number of the format
    float amax = 0;        // of the step under way

    static constexpr std::string_view subject = Options::subject;
    static void visit(auto& self, auto&& field) {
      field("scale", self.scale, names::Interval{.lower = 0});
      field("format_max", self.format_max, names::Interval{.lower = 0});
      field("amax", self.amax, amax_interval());
    }
  };
  struct TensorState {
    Head head;
    std::deque<float> history;  // oldest first, at most amax_history_length - 1 of them between steps
  };

  static constexpr names::Interval amax_interval() {
    return {.lower = 0, .includes_lower = true, .includes_upper = true};
  }
  TensorState state_from_values(const names::NamedValues& values) const;
  void roll(TensorState& tensor) const;

  Options options_;
  KeyedStates<TensorState> tensors_;
};

}  // namespace sim
