#include "sim/loss_scaling/dynamic_scaler.h"

#include <algorithm>
#include <cmath>

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
      return abort("the scale is already at its minimum, " + number_text(floor()) +
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
  if (++state_.growth_tracker >= rule_.growth_interval) grow();
  return Decision::apply;
}

void DynamicScaler::back_off() {
  const double lowered = rule_.divides ? state_.scale / factor(rule_.growth_factor)
                                       : state_.scale * factor(rule_.backoff_factor);
  state_.scale = std::max(stored(lowered), floor());
  if (rule_.backoff_clears_count) state_.bad_steps = 0;
}

void DynamicScaler::grow() {
  double grown = stored(state_.scale * factor(rule_.growth_factor));
  if (rule_.max_scale > 0) grown = std::min<double>(grown, rule_.max_scale);
  if (std::isfinite(grown) || !rule_.growth_stays_finite) state_.scale = grown;
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

NamedValues DynamicScaler::state() const {
  NamedValues state = named_values(state_);
  if (rule_.state_lacks_counters) state.resize(1);
  return state;
}

void DynamicScaler::restore(const NamedValues& state) {
  NamedValues complete = state;
  if (rule_.state_lacks_counters) {
    const NamedValues initial = named_values(initial_state(0));
    complete.insert(complete.end(), initial.begin() + 1, initial.end());
  }
  state_ = state_from<State>(complete);
}

}  // namespace sim
