#pragma once

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

struct LogMaxOptions {
  float min_scale = 1;
  float max_scale = 0x1p14F;
  double log_max = 16;  ///< log2 of the largest gradient that a bad step stands for
  double beta1 = 0.99;
  double beta2 = 0.999;
  double overflow_std_dev = 3.09;
  bool bad_step_enters_as_magnitude = true;  ///< a bad step enters as 2^log_max among logarithms

  static constexpr std::string_view subject = "scaler 'openseq2seq_log_max'";
  static void visit(auto& self, auto&& field) {
    field("min_scale", self.min_scale, names::Interval{.lower = 0});
    field("max_scale", self.max_scale, names::Interval{.lower = 0});
    field("log_max", self.log_max, names::closed_interval(-100, 100));
    field("beta1", self.beta1, names::Interval{.lower = 0, .upper = 1, .includes_lower = true});
    field("beta2", self.beta2, names::Interval{.lower = 0, .upper = 1, .includes_lower = true});
    field("overflow_std_dev", self.overflow_std_dev, names::closed_interval(0, 100));
    field("bad_step_enters_as_magnitude", self.bad_step_enters_as_magnitude, names::closed_interval(0, 1));
  }
};

/// Takes log2 of the largest gradient for normally distributed and sets S so that it overflows in about one
/// step of a thousand. With x = log2 max|g| of the unscaled weight gradients, or log_max at a bad step, every
/// step (of which this is the n-th)
///   m <- beta1 m + (1 - beta1) x,      mean = m / (1 - beta1^n)
///   p <- beta2 p + (1 - beta2) x,      q <- beta2 q + (1 - beta2) x^2
///   variance = q / (1 - beta2^n) - (p / (1 - beta2^n))^2, not below 0
///   S <- 2^(16 - mean - overflow_std_dev sqrt(variance)), clamped to [min_scale, max_scale].
/// A bad step is skipped. S starts at 1 and is hardly ever a power of two.
///
/// Quirk of the original: a bad step enters as 2^log_max = 65536 where a logarithm belongs, and a single one
/// keeps S at min_scale for thousands of steps. Ours: a step whose weight gradients are all zero is applied
/// and leaves everything as it was; there the original gets stuck at NaN.
///
/// Accuracy: S is within 1e-6 relative of the formulas; the logarithm and the power are our own, so that no
/// libm decides a bit.
/// Source: NVIDIA/OpenSeq2Seq open_seq2seq/optimizers/automatic_loss_scaler.py, LogMaxScaler.
class LogMaxScaler final : public LossScaler {
 public:
  using Options = LogMaxOptions;

  /// Throws std::invalid_argument for an option outside its interval or min_scale > max_scale.
  explicit LogMaxScaler(const Options& options = {});

  std::string_view name() const override { return "openseq2seq_log_max"; }
  float scale() const override { return state_.scale; }
  names::NamedValues options() const override { return names::named_values(options_); }
  names::NamedValues state() const override { return names::named_values(state_); }
  void restore(const names::NamedValues& state) override { state_ = names::state_from<State>(state); }

 private:
  struct State {
    float scale = 1;
    double fast_mean = 0;    // m
    double slow_mean = 0;    // p
    double slow_square = 0;  // q
    double beta1_power = 1;  // beta1^n
    double beta2_power = 1;

    static constexpr std::string_view subject = Options::subject;
    static void visit(auto& self, auto&& field) {
      const names::Interval power = names::closed_interval(0, 1);
      field("scale", self.scale, names::Interval{.lower = 0});
      field("fast_mean", self.fast_mean, names::Interval{});
      field("slow_mean", self.slow_mean, names::Interval{});
      field("slow_square", self.slow_square, names::Interval{.lower = 0, .includes_lower = true});
      field("beta1_power", self.beta1_power, power);
      field("beta2_power", self.beta2_power, power);
    }
  };

  Decision decide(const GradientSummary& summary) override;
  void learn(double log2_largest);

  Options options_;
  State state_;
};

}  // namespace sim
