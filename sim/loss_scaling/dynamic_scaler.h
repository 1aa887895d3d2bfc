#pragma once

#include <limits>
#include <string>
#include <type_traits>

#include "sim/loss_scaling/loss_scaler.h"
#include "sim/loss_scaling/scheduler.h"

namespace sim {

/// The numbers in which S is kept and moved.
enum class ScaleArithmetic {
  binary32,              ///< S and the factors are binary32
  binary32_by_binary64,  ///< S is binary32, the factors binary64, and a product is rounded once
  binary64,              ///< both are binary64 (numbers of Python); scale() is S rounded to binary32
};

/// How the count of clean steps is held against growth_interval. All agree while the interval stays the same;
/// a count restored above a smaller interval is where they part.
enum class GrowthTest {
  equal,           ///< grows where it is the interval, then restarts; a count above it never is
  equal_or_wrap,   ///< the same, but where it is not the interval it is kept modulo that
  at_least,        ///< grows where it is the interval or more, then restarts
  every_multiple,  ///< grows at every multiple of the interval; only a bad step restarts it
};

/// How S backs off.
enum class BackOff {
  by_backoff_factor,  ///< S * backoff_factor
  by_division,        ///< S / growth_factor; there is no backoff_factor
  by_reciprocal,      ///< S * (1 / growth_factor), the reciprocal rounded before
};

/// Dynamic loss scaling. A step is bad when a weight gradient is infinite or NaN, else clean.
///   bad step: skipped. The count of clean steps restarts. From the hysteresis-th bad step on S is multiplied
///   by backoff_factor, but not below min_scale.
///   clean step: applied. The growth_interval-th in a row (growth_test) multiplies S by growth_factor, but not
///   above max_scale. It clears the count of bad steps and restarts that of clean ones.
struct DynamicRule {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 2000;
  double min_scale = 0;                   ///< 0: no floor
  double max_scale = 0;                   ///< 0: no ceiling
  int hysteresis = 1;                     ///< the bad step, counted from 1, at which S starts to back off
  bool consecutive_hysteresis = false;    ///< any clean step clears the count of bad steps
  bool raise_error_at_min_scale = false;  ///< a bad step that finds S at min_scale ends the run
  int max_consecutive_bad = 0;            ///< more bad steps in a row end the run; 0: any number may come
  bool unscale_by_updated_scale = false;  ///< gradients are divided by S as it is after the update
  int num_losses = 1;
  bool delay_unscale = false;          ///< micro-batches add up scaled, and S moves once a step
  bool jit_forgets_min_scale = false;  ///< the floor is 1 whatever min_scale says
  bool state_lacks_counters = false;   ///< saved state holds S alone, so that a resumed run counts anew

  // No options: how an original differs without leaving a choice.
  GrowthTest growth_test = GrowthTest::equal;
  BackOff back_off = BackOff::by_backoff_factor;
  bool backoff_clears_count = false;  ///< S backs off at every hysteresis-th bad step only
  bool growth_stays_finite = false;   ///< growth is refused when the result is not finite
  bool late_after_backoff = false;    ///< the first clean step, also after a bad one, does not count
  bool late_after_growth = false;     ///< nor does the first one after growth
  bool updates_per_backward = false;  ///< unless delay_unscale
  ScaleArithmetic arithmetic = ScaleArithmetic::binary32;

  static void visit(auto& self, auto&& field) {
    const names::Interval positive{.lower = 0};
    const names::Interval not_negative{.lower = 0, .includes_lower = true};
    const names::Interval flag = names::closed_interval(0, 1);
    const names::Interval count = names::closed_interval(1, std::numeric_limits<int>::max());
    // Scales are options in the numbers that S is kept in.
    const auto scale_field = [&](std::string_view name, auto& scale, const names::Interval& allowed) {
      if (self.arithmetic == ScaleArithmetic::binary64) return field(name, scale, allowed);
      auto single = static_cast<float>(scale);
      field(name, single, allowed);
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(scale)>>) scale = single;
    };
    scale_field("init_scale", self.init_scale, positive);
    field("growth_factor", self.growth_factor, names::Interval{.lower = 1});
    field("backoff_factor", self.backoff_factor, names::Interval{.lower = 0, .upper = 1});
    field("growth_interval", self.growth_interval, count);
    scale_field("min_scale", self.min_scale, not_negative);
    scale_field("max_scale", self.max_scale, not_negative);
    field("hysteresis", self.hysteresis, count);
    field("consecutive_hysteresis", self.consecutive_hysteresis, flag);
    field("raise_error_at_min_scale", self.raise_error_at_min_scale, flag);
    field("max_consecutive_bad", self.max_consecutive_bad, not_negative);
    field("unscale_by_updated_scale", self.unscale_by_updated_scale, flag);
    field("num_losses", self.num_losses, count);
    field("delay_unscale", self.delay_unscale, flag);
    field("jit_forgets_min_scale", self.jit_forgets_min_scale, flag);
    field("state_lacks_counters", self.state_lacks_counters, flag);
  }
};

using DynamicScheduler = Scheduler<DynamicRule>;

/// The state machine of every DynamicScheduler.
class DynamicScaler final : public LossScaler {
 public:
  /// `scheduler` must outlive the scaler; `rule` is its rule with the options in force. Throws
  /// std::invalid_argument when min_scale > max_scale or init_scale does not lie between them.
  DynamicScaler(const DynamicScheduler& scheduler, const DynamicRule& rule);

  std::string_view name() const override { return scheduler_.name; }
  float scale() const override { return static_cast<float>(state_.scale); }
  float unscale_scale() const override;
  std::string abort_reason() const override { return abort_reason_; }
  UpdateGranularity update_granularity() const override;
  int num_losses() const override { return rule_.num_losses; }
  names::NamedValues options() const override { return offered_values(scheduler_, rule_); }
  names::NamedValues state() const override;
  void restore(const names::NamedValues& state) override;

 private:
  struct State {
    double scale = 0;
    int growth_tracker = 0;  // clean steps that count towards growth_interval
    int bad_steps = 0;       // that count towards hysteresis
    int consecutive_bad = 0;

    static constexpr std::string_view subject = "dynamic scaler";
    static void visit(auto& self, auto&& field) {
      const names::Interval count = names::closed_interval(0, std::numeric_limits<int>::max());
      field("scale", self.scale, names::closed_interval(0, std::numeric_limits<double>::infinity()));
      field("growth_tracker", self.growth_tracker, names::closed_interval(-1, count.upper));
      field("bad_steps", self.bad_steps, count);
      field("consecutive_bad", self.consecutive_bad, count);
    }
  };

  Decision decide(const GradientSummary& summary) override;
  Decision bad_step();
  Decision clean_step();
  bool counts_to_growth();
  void back_off();
  double lowered() const;
  void grow();
  Decision abort(const std::string& reason);
  State initial_state(double scale) const;
  double stored(double scale) const;
  double factor(double given) const;
  double floor() const { return rule_.jit_forgets_min_scale ? 1 : rule_.min_scale; }

  const DynamicScheduler& scheduler_;
  DynamicRule rule_;
  State state_;
  std::string abort_reason_;
};

}  // namespace sim
