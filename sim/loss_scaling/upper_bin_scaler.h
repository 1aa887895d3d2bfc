#pragma once

#include <cstdint>
#include <limits>

#include "sim/loss_scaling/loss_scaler.h"
#include "sim/loss_scaling/scheduler.h"

namespace sim {

/// Loss scaling by a histogram with two bins and one edge. Over the last update_period steps u scaled
/// gradients lay at the edge, bin_edge_location * 65504, or above (infinities and NaNs as well), and l below.
/// Then S is multiplied by backoff_factor if u > threshold * (u + l), else by growth_factor. No step is ever
/// skipped, whatever is in its gradients.
///
/// The edge is (2 - 2^-10) 2^e for a bin_edge_location that is a power of two, and ExponentHistogram counts
/// exactly from there. All weight and activation gradients count.
struct UpperBinRule {
  float init_scale = 1;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int update_period = 1;
  double threshold = 1e-7;
  double bin_edge_location = 0.125;
  float max_scale = 0;                ///< 0: none
  bool accumulate_statistics = true;  ///< false: only the last step of a period is counted

  /// No option. True: an S that would not be finite, reach max_scale or fall below 1 is refused, and S stays.
  /// False: S moves on, and max_scale only clips what scale() returns.
  bool refuses = false;

  static void visit(auto& self, auto&& field) {
    field("init_scale", self.init_scale, names::Interval{.lower = 0});
    field("growth_factor", self.growth_factor, names::Interval{.lower = 1});
    field("backoff_factor", self.backoff_factor, names::Interval{.lower = 0, .upper = 1});
    field("update_period", self.update_period, names::closed_interval(1, std::numeric_limits<int>::max()));
    field("threshold", self.threshold, names::Interval{.lower = 0, .upper = 1});
    field("bin_edge_location", self.bin_edge_location, names::closed_interval(0x1p-29, 1));
    field("max_scale", self.max_scale, names::Interval{.lower = 0, .includes_lower = true});
    field("accumulate_statistics", self.accumulate_statistics, names::closed_interval(0, 1));
  }
};

using UpperBinScheduler = Scheduler<UpperBinRule>;

/// graphcore/popart willow/src/popx/op/lossscaleupdatex.cpp and sessionoptions.hpp. S may reach 0 or
/// infinity. init_scale is the user's own factor; one release clipped S at 2^15: max_scale.
inline constexpr UpperBinScheduler popart{
    .name = "popart",
    .description = "PopART: halves or doubles S each step by the share of gradients above 8188; never skips",
    .options = {"init_scale", "update_period", "threshold", "bin_edge_location", "max_scale"},
    .rule = {}};

/// graphcore/tensorflow tensorflow/python/ipu/optimizers/automatic_loss_scaling_optimizer.py. The original
/// counts weight gradients only.
inline constexpr UpperBinScheduler graphcore_tensorflow{
    .name = "graphcore_tensorflow",
    .description = "Graphcore TensorFlow: every 8 steps by the share of gradients at 65504; never skips",
    .options = {"init_scale", "growth_factor", "backoff_factor", "update_period", "threshold", "max_scale",
                "accumulate_statistics"},
    .rule = {
        .update_period = 8, .threshold = 1e-5, .bin_edge_location = 1, .max_scale = 32768, .refuses = true}};

class UpperBinScaler final : public LossScaler {
 public:
  /// `scheduler` must outlive the scaler. Throws std::invalid_argument unless bin_edge_location is a power of
  /// two, and when init_scale > max_scale or, for a rule that refuses, init_scale * growth_factor >=
  /// max_scale.
  UpperBinScaler(const UpperBinScheduler& scheduler, const UpperBinRule& rule);

  std::string_view name() const override { return scheduler_.name; }
  float scale() const override;
  bool needs_exponents() const override { return true; }
  names::NamedValues options() const override { return offered_values(scheduler_, rule_); }
  names::NamedValues state() const override { return names::named_values(state_); }
  void restore(const names::NamedValues& state) override { state_ = names::state_from<State>(state); }

 private:
  struct State {
    float scale = 0;
    int steps = 0;  // since the last update
    double upper = 0;
    double total = 0;

    static constexpr std::string_view subject = "scaler of an upper bin";
    static void visit(auto& self, auto&& field) {
      const names::Interval not_negative{.lower = 0, .includes_lower = true};
      field("scale", self.scale, names::closed_interval(0, std::numeric_limits<float>::infinity()));
      field("steps", self.steps, not_negative);
      field("upper", self.upper, not_negative);
      field("total", self.total, not_negative);
    }
  };

  Decision decide(const GradientSummary& summary) override;
  std::uint64_t upper_count(const fp16::ExponentHistogram& exponents) const;
  void move();

  const UpperBinScheduler& scheduler_;
  UpperBinRule rule_;
  State state_;
};

}  // namespace sim
