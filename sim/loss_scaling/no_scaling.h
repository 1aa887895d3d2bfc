#pragma once

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

/// S = 1 for ever. Looks at nothing and never skips, so non-finite gradients reach the optimizer.
class NoScaling final : public LossScaler {
 public:
  struct Options {
    static constexpr std::string_view subject = "scaler 'none'";
    static void visit(auto&, auto&&) {}
  };

  explicit NoScaling(const Options& = {}) {}

  std::string_view name() const override { return "none"; }
  float scale() const override { return 1; }
  names::NamedValues options() const override { return {}; }

 private:
  Decision decide(const GradientSummary&) override { return Decision::apply; }
};

}  // namespace sim
