#pragma once
/// The rules of schedules, each with its options. p = min(s / n, 1) is the share of the n steps after warm-up
/// that lies behind step s, and 1 where n = 0.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sim/schedules/schedule.h"
#include "sim/tensor/integer_power.h"

namespace sim {

inline double share_done(std::uint64_t step, std::uint64_t steps) {
  return step >= steps ? 1 : static_cast<double>(step) / static_cast<double>(steps);
}

/// 1.
struct ConstantRule : ScheduleOptions {
  static constexpr std::string_view name = "constant";
  static constexpr std::string_view subject = "schedule 'constant'";

  double factor(std::uint64_t, std::uint64_t) const { return 1; }
};

/// final_factor + (1 - final_factor) * cos(pi/2 * p)^2; where final_factor is 0 this is (1 + cos(pi * p))
/// / 2. Within 2^-50 of the exact value; exactly 1 at p = 0 and final_factor at p = 1.
///
/// Source: Loshchilov and Hutter, SGDR (ICLR 2017), equation 5, without restarts.
struct CosineRule : ScheduleOptions {
  double final_factor = 0;

  static constexpr std::string_view name = "cosine";
  static constexpr std::string_view subject = "schedule 'cosine'";
  static void visit(auto& self, auto&& field) {
    ScheduleOptions::visit(self, field);
    field("final_factor", self.final_factor, names::computed_in_binary32(names::closed_interval(0, 1)));
  }

  double factor(std::uint64_t step, std::uint64_t steps) const {
    const double cosine = quarter_wave(share_done(step, steps));
    return final_factor + (1 - final_factor) * (cosine * cosine);
  }

  /// cos(pi/2 * p) for p in [0, 1], by the Taylor series of the cosine or the sine up to pi/4, whose first
  /// term left out is below 2^-56.
  static constexpr double quarter_wave(double p) {
    constexpr double half_pi = 0x1.921fb54442d18p0;
    const bool past_middle = p > 0.5;
    const double angle = half_pi * (past_middle ? 1 - p : p);
    double series = 1;
    for (int degree = past_middle ? 17 : 16; degree >= 2; degree -= 2)
      series = 1 - angle * angle / (degree * (degree - 1)) * series;
    return past_middle ? angle * series : series;
  }
};

/// 1 - (1 - final_factor) * p.
struct LinearRule : ScheduleOptions {
  double final_factor = 0;

  static constexpr std::string_view name = "linear";
  static constexpr std::string_view subject = "schedule 'linear'";
  static void visit(auto& self, auto&& field) {
    ScheduleOptions::visit(self, field);
    field("final_factor", self.final_factor, names::computed_in_binary32(names::closed_interval(0, 1)));
  }

  double factor(std::uint64_t step, std::uint64_t steps) const {
    return 1 - (1 - final_factor) * share_done(step, steps);
  }
};

/// decay^floor(s / period), as torch.optim.lr_scheduler.StepLR; n has no meaning.
struct StepRule : ScheduleOptions {
  int period = 1000;  ///< steps from one drop to the next
  double decay = 0.1;

  static constexpr std::string_view name = "step";
  static constexpr std::string_view subject = "schedule 'step'";
  static void visit(auto& self, auto&& field) {
    ScheduleOptions::visit(self, field);
    field("period", self.period, names::closed_interval(1, std::numeric_limits<int>::max()));
    field("decay", self.decay, names::computed_in_binary32({.lower = 0, .upper = 1, .includes_upper = true}));
  }

  double factor(std::uint64_t step, std::uint64_t) const {
    return integer_power(decay, step / static_cast<std::uint64_t>(period));
  }
};

}  // namespace sim
