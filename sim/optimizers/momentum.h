#pragma once

#include "sim/optimizers/moment_buffer.h"
#include "sim/optimizers/optimizer.h"

namespace sim {

struct MomentumOptions {
  double learning_rate = 0.05;
  double momentum = 0.9;

  static constexpr std::string_view subject = "optimizer 'momentum'";
  static void visit(auto& self, auto&& field) {
    field("learning_rate", self.learning_rate, Interval{.lower = 0});
    field("momentum", self.momentum, Interval{.lower = 0, .upper = 1, .includes_lower = true});
  }
};

/// Stochastic gradient descent with heavy-ball momentum, as torch.optim.SGD without dampening, in binary32:
///   v <- fl(fl(momentum * v) + g)        v = 0 before the first step
///   w <- fl(w - fl(learning_rate * v))
/// Four bytes of state per weight.
class Momentum final : public Optimizer {
 public:
  using Options = MomentumOptions;

  /// Throws std::invalid_argument unless learning_rate > 0 is finite and 0 <= momentum < 1.
  explicit Momentum(const Options& options = {}) : options_(checked(options)) {}

  std::string_view name() const override { return "momentum"; }
  void begin_step() override {}
  void update(std::size_t parameter, std::span<float> weights, std::span<const float> gradients) override;
  std::size_t state_bytes_per_weight() const override { return sizeof(float); }
  NamedValues options() const override { return named_values(options_); }

 private:
  Options options_;
  MomentBuffer velocities_;
};

}  // namespace sim
