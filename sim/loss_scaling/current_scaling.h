#pragma once

#include "sim/precision/tensor_scaler.h"

namespace sim {

struct CurrentScalingOptions {
  float amax_epsilon = 0;     ///< a smaller amax counts as this
  bool power_of_two = false;  ///< the scale is rounded down to a power of two

  static constexpr std::string_view subject = "scaler 'current'";
  static void visit(auto& self, auto&& field) {
    field("amax_epsilon", self.amax_epsilon, names::Interval{.lower = 0, .includes_lower = true});
    field("power_of_two", self.power_of_two, names::closed_interval(0, 1));
  }
};

/// Transformer Engine's Float8CurrentScaling: the scale of a cast is (largest number of the format) / amax of
/// the very values that are cast, so that the largest becomes the largest number; 1 where amax is 0, infinite
/// or a NaN. The quotient is rounded once, in binary32; beyond its range it is its largest number. No memory.
///
/// Source: NVIDIA/TransformerEngine transformer_engine/common/recipe/recipe_common.cuh.
class CurrentScaling final : public TensorScaler {
 public:
  using Options = CurrentScalingOptions;

  /// Throws std::invalid_argument unless amax_epsilon is finite and not negative.
  explicit CurrentScaling(const Options& options = {}) : options_(names::checked(options)) {}

  std::string_view name() const override { return "current"; }
  float scale(std::string_view tensor, const fp16::Format& format, float max_abs) override;
  void end_step() override {}
  names::NamedValues options() const override { return names::named_values(options_); }
  names::NamedValues state() const override { return {}; }
  void restore(const names::NamedValues& state) override;

 private:
  Options options_;
};

}  // namespace sim
