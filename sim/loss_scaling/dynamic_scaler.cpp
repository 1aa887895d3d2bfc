#include "sim/loss_scaling/dynamic_scaler.h"

#include <cmath>

namespace sim {

DynamicScaler::DynamicScaler(const Options& options)
    : options_(checked(options)), state_{.scale = options.init_scale} {}

Decision DynamicScaler::update(const GradientSummary& summary) {
  if (summary.found_nonfinite) {
    state_ = {.scale = static_cast<float>(state_.scale * options_.backoff_factor)};
    return Decision::skip;
  }
  if (++state_.growth_tracker == options_.growth_interval) {
    const auto grown = static_cast<float>(state_.scale * options_.growth_factor);
    if (std::isfinite(grown)) state_.scale = grown;
    state_.growth_tracker = 0;
  }
  return Decision::apply;
}

void DynamicScaler::restore(const NamedValues& state) {
  state_ = state_from<State>(state);
}

}  // namespace sim
