#include "sim/loss_scaling/current_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace sim {

float CurrentScaling::scale(std::string_view, const fp16::Format& format, float max_abs) {
  const float amax = max_abs < options_.amax_epsilon ? options_.amax_epsilon : max_abs;
  if (amax == 0 || !std::isfinite(amax)) return 1;
  const float quotient = static_cast<float>(format.max()) / amax;
  const float scale = std::min(quotient, std::numeric_limits<float>::max());
  return options_.power_of_two ? std::ldexp(1.0f, std::ilogb(scale)) : scale;
}

void CurrentScaling::restore(const names::NamedValues& state) {
  if (state.empty()) return;
  throw std::invalid_argument(std::string(Options::subject) + ": saved state has an unknown entry '" +
                              state.front().first + "'");
}

}  // namespace sim
