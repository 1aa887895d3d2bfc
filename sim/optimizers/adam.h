#pragma once

#include "sim/optimizers/optimizer.h"

namespace sim {

struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  static constexpr std::string_view subject = "optimizer 'adam'";
  static void visit(auto& self, auto&& field) {
    constexpr names::Interval decay =
        names::computed_in_binary32({.lower = 0, .upper = 1, .includes_lower = true});
    constexpr names::Interval at_least_0 = names::computed_in_binary32({.lower = 0, .includes_lower = true});
    field("learning_rate", self.learning_rate, names::computed_in_binary32({.lower = 0}));
    field("beta1", self.beta1, decay);
    field("beta2", self.beta2, decay);
    field("epsilon", self.epsilon, at_least_0);
    field("weight_decay", self.weight_decay, at_least_0);
  }
};

/// What a step needs of t and the options, formed in binary64.
struct AdamStep {
  double gradient_decay = 0;  ///< 0: none
  double weight_factor = 1;   ///< 1: no decoupled decay
  double beta1, beta2, epsilon;
  double minus_step_size;    ///< -(learning_rate / (1 - beta1^t))
  double second_correction;  ///< sqrt(1 - beta2^t)
};

/// How weight decay enters.
enum class WeightDecay {
  in_gradient,  ///< as the gradient of an L2 penalty, which the moments see
  decoupled     ///< the weight shrinks by a factor of its own (Loshchilov and Hutter, ICLR 2019)
};

/// torch.optim.Adam without AMSGrad. At step t = 1, 2, ... every operation below rounds, in the order of the
/// parentheses; brackets are what a tensor operation of PyTorch is, and round to
/// UpdateArithmetic::operations:
///   g <- [g + (weight_decay * w)]                          in_gradient, where weight_decay is not 0
///   w <- [w * (1 - learning_rate * weight_decay)]          decoupled, where weight_decay is not 0
///   m <- [m + ((1 - beta1) * (g - m))]                     where beta1 > 1/2
///   m <- [g - ((g - m) * (1 - (1 - beta1)))]               where beta1 <= 1/2
///   v <- [[beta2 * v] + (((1 - beta2) * g) * g)]
///   d <- [[[sqrt(v)] / sqrt(1 - beta2^t)] + epsilon]
///   w <- w + (-(learning_rate / (1 - beta1^t)) * (m / d))  summed exactly, rounded once to the weight's format
/// m = v = 0 before the first step. What depends on t and the options alone is formed in binary64 (beta^t by
/// repeated squaring) and rounded once to the type that is computed in. Two moments per weight. With epsilon
/// = 0 a weight whose gradients have all been zero becomes NaN (0/0).
///
/// Source: Kingma and Ba, Adam (ICLR 2015), algorithm 1; pytorch/pytorch torch/optim/adam.py.
class Adam : public Optimizer {
 public:
  using Options = AdamOptions;

  /// Throws std::invalid_argument unless learning_rate > 0, 0 <= beta1, beta2 < 1, epsilon >= 0 and
  /// weight_decay >= 0, all finite.
  explicit Adam(const AdamOptions& options = {}, const UpdateArithmetic& arithmetic = {},
                WeightDecay decay = WeightDecay::in_gradient);

  std::string_view name() const override { return "adam"; }
  names::NamedValues options() const override { return names::named_values(options_); }
  double learning_rate() const override { return options_.learning_rate; }

 protected:
  std::size_t moment_count() const override { return 2; }
  std::string_view moment_name(std::size_t moment) const override {
    return moment == 0 ? "first moment" : "second moment";
  }
  void prepare(double learning_rate) override;
  void compute(const UpdateChunk<float>& chunk) const override;
  void compute(const UpdateChunk<double>& chunk) const override;

 private:
  AdamOptions options_;
  WeightDecay decay_;
  AdamStep step_ = {};
};

struct AdamWOptions : AdamOptions {
  static constexpr std::string_view subject = "optimizer 'adamw'";
  AdamWOptions() : AdamOptions{.weight_decay = 0.01} {}
};

/// torch.optim.AdamW without AMSGrad: Adam with decoupled weight decay.
class AdamW final : public Adam {
 public:
  using Options = AdamWOptions;
  explicit AdamW(const Options& options = {}, const UpdateArithmetic& arithmetic = {})
      : Adam(names::checked(options), arithmetic, WeightDecay::decoupled) {}

  std::string_view name() const override { return "adamw"; }
};

}  // namespace sim
