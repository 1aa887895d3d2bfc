#pragma once

#include "sim/optimizers/moment_buffer.h"
#include "sim/optimizers/optimizer.h"

namespace sim {

struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  static constexpr std::string_view subject = "optimizer 'adam'";
  static void visit(auto& self, auto&& field) {
    constexpr Interval decay{.lower = 0, .upper = 1, .includes_lower = true};
    field("learning_rate", self.learning_rate, Interval{.lower = 0});
    field("beta1", self.beta1, decay);
    field("beta2", self.beta2, decay);
    field("epsilon", self.epsilon, Interval{.lower = 0, .includes_lower = true});
  }
};

/// Adam in the form of torch.optim.Adam without weight decay. At step t = 1, 2, ...:
///   m <- m + (1 - beta1) * (g - m)
///   v <- beta2 * v + ((1 - beta2) * g) * g
///   w <- w - (learning_rate / (1 - beta1^t)) * (m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon))
/// m = v = 0 before the first step. Values per weight are binary32 and every operation rounds once, in the
/// order of the parentheses. What depends on t and the options alone (1 - beta, the quotient with the
/// learning rate, sqrt(1 - beta2^t)) is formed in double, beta^t by repeated multiplication, and rounded once
/// to binary32. Eight bytes of state per weight. With epsilon = 0 a weight whose gradients have all been zero
/// becomes NaN (0/0).
///
/// Source: Kingma and Ba, Adam (ICLR 2015), algorithm 1.
class Adam final : public Optimizer {
 public:
  using Options = AdamOptions;

  /// Throws std::invalid_argument unless learning_rate > 0, 0 <= beta1, beta2 < 1 and epsilon >= 0, all
  /// finite.
  explicit Adam(const Options& options = {}) : options_(checked(options)) {}

  std::string_view name() const override { return "adam"; }
  void begin_step() override;
  void update(std::size_t parameter, std::span<float> weights, std::span<const float> gradients) override;
  std::size_t state_bytes_per_weight() const override { return 2 * sizeof(float); }
  NamedValues options() const override { return named_values(options_); }

 private:
  Options options_;
  double beta1_power_ = 1;  // beta1^t
  double beta2_power_ = 1;
  MomentBuffer first_moments_;
  MomentBuffer second_moments_;
};

}  // namespace sim
