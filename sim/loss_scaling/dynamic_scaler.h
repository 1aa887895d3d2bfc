#pragma once

#include <limits>

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

struct DynamicOptions {
  float init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 2000;  ///< clean steps in a row before S grows

  static constexpr std::string_view subject = "scaler 'dynamic'";
  static void visit(auto& self, auto&& field) {
    field("init_scale", self.init_scale, Interval{.lower = 0});
    field("growth_factor", self.growth_factor, Interval{.lower = 1});
    field("backoff_factor", self.backoff_factor, Interval{.lower = 0, .upper = 1});
    field("growth_interval", self.growth_interval, closed_interval(1, std::numeric_limits<int>::max()));
  }
};

/// torch.amp.GradScaler's rule to the letter.
///   non-finite step: skipped; S <- S * backoff_factor; the count of clean steps restarts.
///   clean step: applied; after growth_interval of them in a row S <- S * growth_factor, unless that is not
///   finite in binary32, and the count restarts either way.
/// Products are formed in double and stored in binary32. There is no floor: if no step is ever clean, S
/// halves through the subnormals down to 0, and 1/S is infinite from 2^-128 on.
///
/// Source: pytorch/pytorch torch/amp/grad_scaler.py, aten/src/ATen/native/cuda/AmpKernels.cu (2.1 and later).
class DynamicScaler final : public LossScaler {
 public:
  using Options = DynamicOptions;

  /// Throws std::invalid_argument unless init_scale is positive and finite, growth_factor > 1 and finite,
  /// 0 < backoff_factor < 1 and growth_interval >= 1.
  explicit DynamicScaler(const Options& options = {});

  std::string_view name() const override { return "dynamic"; }
  float scale() const override { return state_.scale; }
  Decision update(const GradientSummary& summary) override;
  NamedValues options() const override { return named_values(options_); }
  NamedValues state() const override { return named_values(state_); }
  void restore(const NamedValues& state) override;

 private:
  struct State {
    float scale = 0;
    int growth_tracker = 0;  // clean steps in a row

    static constexpr std::string_view subject = Options::subject;
    static void visit(auto& self, auto&& field) {
      field("scale", self.scale, Interval{.lower = 0, .includes_lower = true});
      field("growth_tracker", self.growth_tracker, Interval{.lower = 0, .includes_lower = true});
    }
  };

  Options options_;
  State state_;
};

}  // namespace sim
