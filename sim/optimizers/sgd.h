#pragma once

#include "sim/optimizers/optimizer.h"

namespace sim {

struct SgdOptions {
  double learning_rate = 0.1;

  static constexpr std::string_view subject = "optimizer 'sgd'";
  static void visit(auto& self, auto&& field) {
    field("learning_rate", self.learning_rate, Interval{.lower = 0});
  }
};

/// Plain stochastic gradient descent in binary32: w <- fl(w - fl(learning_rate * g)). Keeps no state.
class Sgd final : public Optimizer {
 public:
  using Options = SgdOptions;

  /// Throws std::invalid_argument unless learning_rate is positive and finite.
  explicit Sgd(const Options& options = {}) : options_(checked(options)) {}

  std::string_view name() const override { return "sgd"; }
  void begin_step() override {}
  void update(std::size_t parameter, std::span<float> weights, std::span<const float> gradients) override;
  std::size_t state_bytes_per_weight() const override { return 0; }
  NamedValues options() const override { return named_values(options_); }

 private:
  Options options_;
};

}  // namespace sim
