#pragma once

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

struct StaticOptions {
  float scale = 1024;
  bool skip_nonfinite =
      true;  ///< false: steps that are not finite are applied too, as Apex amp and TensorFlow do

  static constexpr std::string_view subject = "scaler 'static'";
  static void visit(auto& self, auto&& field) {
    field("scale", self.scale, names::Interval{.lower = 0});
    field("skip_nonfinite", self.skip_nonfinite, names::closed_interval(0, 1));
  }
};

/// A constant S. A step with non-finite gradients is skipped (also by Megatron's ConstantGradScaler and
/// MindSpore's FixedLossScaleManager), and S does not move.
/// Source: Micikevicius et al., Mixed Precision Training (ICLR 2018), section 3.2.
class StaticScaler final : public LossScaler {
 public:
  using Options = StaticOptions;

  /// Throws std::invalid_argument unless the scale is positive and finite.
  explicit StaticScaler(const Options& options = {}) : options_(names::checked(options)) {}

  std::string_view name() const override { return "static"; }
  float scale() const override { return options_.scale; }
  names::NamedValues options() const override { return names::named_values(options_); }

 private:
  Decision decide(const GradientSummary& summary) override {
    return summary.found_nonfinite && options_.skip_nonfinite ? Decision::skip : Decision::apply;
  }

  Options options_;
};

}  // namespace sim
