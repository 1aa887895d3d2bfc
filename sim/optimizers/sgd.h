#pragma once

#include "sim/optimizers/optimizer.h"

namespace sim {

struct SgdOptions {
  double learning_rate = 0.1;
  double momentum = 0;
  int nesterov = 0;  ///< 1: look ahead; needs momentum
  double weight_decay = 0;

  static constexpr std::string_view subject = "optimizer 'sgd'";
  static void visit(auto& self, auto&& field) {
    field("learning_rate", self.learning_rate, names::computed_in_binary32({.lower = 0}));
    field("momentum", self.momentum,
          names::computed_in_binary32({.lower = 0, .upper = 1, .includes_lower = true}));
    field("nesterov", self.nesterov, names::closed_interval(0, 1));
    field("weight_decay", self.weight_decay,
          names::computed_in_binary32({.lower = 0, .includes_lower = true}));
  }
};

/// torch.optim.SGD without dampening. Every operation below rounds, in the order of the parentheses; brackets
/// are what a tensor operation of PyTorch is, and round to UpdateArithmetic::operations:
///   g <- [g + (weight_decay * w)]  where weight_decay is not 0
///   b <- [[momentum * b] + g]      where momentum is not 0
///   g <- b                         where momentum is not 0, without nesterov
///   g <- [g + (momentum * b)]      where momentum is not 0, with nesterov
///   w <- w + (-learning_rate * g)  summed exactly, rounded once to the weight's format
/// b = 0 before the first step. One moment per weight with momentum, else none.
///
/// Source: pytorch/pytorch torch/optim/sgd.py.
class Sgd : public Optimizer {
 public:
  using Options = SgdOptions;

  /// Throws std::invalid_argument unless learning_rate > 0 is finite, 0 <= momentum < 1, weight_decay >= 0 is
  /// finite and there is momentum to go with nesterov.
  explicit Sgd(const SgdOptions& options = {}, const UpdateArithmetic& arithmetic = {});

  std::string_view name() const override { return "sgd"; }
  names::NamedValues options() const override { return names::named_values(options_); }
  double learning_rate() const override { return options_.learning_rate; }

 protected:
  std::size_t moment_count() const override { return options_.momentum != 0; }
  std::string_view moment_name(std::size_t) const override { return "momentum"; }
  void prepare(double learning_rate) override { learning_rate_ = learning_rate; }
  void compute(const UpdateChunk<float>& chunk) const override;
  void compute(const UpdateChunk<double>& chunk) const override;

 private:
  SgdOptions options_;
  double learning_rate_ = 0;
};

struct MomentumOptions : SgdOptions {
  static constexpr std::string_view subject = "optimizer 'momentum'";
  MomentumOptions() : SgdOptions{.learning_rate = 0.05, .momentum = 0.9} {}
};

/// Sgd with other defaults.
class Momentum final : public Sgd {
 public:
  using Options = MomentumOptions;
  explicit Momentum(const Options& options = {}, const UpdateArithmetic& arithmetic = {})
      : Sgd(names::checked(options), arithmetic) {}

  std::string_view name() const override { return "momentum"; }
};

}  // namespace sim
