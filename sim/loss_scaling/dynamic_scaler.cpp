#include "sim/loss_scaling/dynamic_scaler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sim {

DynamicScaler::DynamicScaler(const DynamicScheduler& scheduler, const DynamicRule& rule)
    : scheduler_(scheduler), rule_(rule), state_(initial_state(rule.init_scale)) {
  check_scale_limits(scheduler.subject(), rule.init_scale, floor(), rule.max_scale);
  if (rule.num_losses > 1 && rule.delay_unscale) {
    throw std::invalid_argument(scheduler.subject() + ": delay_unscale adds up gradients that are still " +
                                "scaled, so num_losses must be 1 with it, not " +
                                std::to_string(rule.num_losses));
  }
}

Decision DynamicScaler::decide(const GradientSummary& summary) {
  abort_reason_.clear();
  return summary.found_nonfinite ? bad_step() : clean_step();
}

Decision DynamicScaler::bad_step() {
  state_.growth_tracker = rule_.late_after_backoff ? -1 : 0;
  state_.bad_steps = std::min(state_.bad_steps + 1, rule_.hysteresis);
  state_.consecutive_bad += 1;
  if (state_.bad_steps == rule_.hysteresis) {
    if (rule_.raise_error_at_min_scale && state_.scale == floor()) {
      return abort("the scale is already at its minimum, " + names::number_text(floor()) +
                   ", and the gradients are still not finite");
    }
    back_off();
  }
  if (rule_.max_consecutive_bad > 0 && state_.consecutive_bad > rule_.max_consecutive_bad) {
    return abort(std::to_string(state_.consecutive_bad) +
                 " steps in a row had gradients that are not finite; allowed: " +
                 std::to_string(rule_.max_consecutive_bad));
  }
  return Decision::skip;
}

Decision DynamicScaler::clean_step() {
  state_.consecutive_bad = 0;
  if (rule_.consecutive_hysteresis) state_.bad_steps = 0;
  if (counts_to_growth()) grow();
  return Decision::apply;
}

bool DynamicScaler::counts_to_growth() {
  constexpr int most = std::numeric_limits<int>::max();
  const int count = state_.growth_tracker = std::min(state_.growth_tracker, most - 1) + 1;
  const int interval = rule_.growth_interval;
  switch (rule_.growth_test) {
    case GrowthTest::equal:
      return count == interval;
    case GrowthTest::equal_or_wrap:
      if (count != interval) state_.growth_tracker %= interval;
      return count == interval;
    case GrowthTest::at_least:
      return count >= interval;
    case GrowthTest::every_multiple:
      return count > 0 && count % interval == 0;
  }
  return false;
}

void DynamicScaler::back_off() {
  state_.scale = std::max(stored(lowered()), floor());
  if (rule_.backoff_clears_count) state_.bad_steps = 0;
}

double DynamicScaler::lowered() const {
  switch (rule_.back_off) {
    case BackOff::by_backoff_factor:
      return state_.scale * factor(rule_.backoff_factor);
    case BackOff::by_division:
      return state_.scale / factor(rule_.growth_factor);
    case BackOff::by_reciprocal:
      return state_.scale * (1 / factor(rule_.growth_factor));
  }
  return state_.scale;
}

void DynamicScaler::grow() {
  double grown = stored(state_.scale * factor(rule_.growth_factor));
  if (rule_.max_scale > 0) grown = std::min(grown, rule_.max_scale);
  if (std::isfinite(grown) || !rule_.growth_stays_finite) state_.scale = grown;
  if (rule_.growth_test != GrowthTest::every_multiple)
    state_.growth_tracker = rule_.late_after_growth ? -1 : 0;
  state_.bad_steps = 0;
}

Decision DynamicScaler::abort(const std::string& reason) {
  abort_reason_ = scheduler_.subject() + ": " + reason;
  return Decision::abort;
}

// Products and quotients of binary32 numbers, rounded from binary64, are rounded as if once: 53 >= 2 * 24
// + 2.
double DynamicScaler::stored(double scale) const {
  return rule_.arithmetic == ScaleArithmetic::binary64 ? scale : static_cast<float>(scale);
}

double DynamicScaler::factor(double given) const {
  return rule_.arithmetic == ScaleArithmetic::binary32 ? static_cast<float>(given) : given;
}

float DynamicScaler::unscale_scale() const {
  return rule_.unscale_by_updated_scale ? scale() : LossScaler::unscale_scale();
}

UpdateGranularity DynamicScaler::update_granularity() const {
  return rule_.updates_per_backward && !rule_.delay_unscale ? UpdateGranularity::per_backward
                                                            : UpdateGranularity::per_step;
}

DynamicScaler::State DynamicScaler::initial_state(double scale) const {
  return {.scale = scale, .growth_tracker = rule_.late_after_backoff ? -1 : 0};
}

names::NamedValues DynamicScaler::state() const {
  names::NamedValues state = names::named_values(state_);
  if (rule_.state_lacks_counters) state.resize(1);
  return state;
}

void DynamicScaler::restore(const names::NamedValues& state) {
  names::NamedValues complete = state;
  if (rule_.state_lacks_counters) {
    const names::NamedValues initial = names::named_values(initial_state(0));
    complete.insert(complete.end(), initial.begin() + 1, initial.end());
  }
  state_ = names::state_from<State>(complete);
}

}  // namespace sim
