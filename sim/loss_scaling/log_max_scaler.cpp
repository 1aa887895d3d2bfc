#include "sim/loss_scaling/log_max_scaler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fp16/elementary.h"
#include "sim/loss_scaling/scheduler.h"
#include "sim/tensor/log2.h"

namespace sim {
namespace {

// 2^x within 2e-7 relative, without libm; 0 far below and infinity far above binary32's range.
float power_of_two(double x) {
  const double integer = std::round(std::clamp(x, -1000.0, 1000.0));
  const double fraction = std::clamp(x - integer, -0.5, 0.5);
  constexpr double ln2 = 0x1.62e42fefa39efp-1;
  return std::ldexp(fp16::exp(static_cast<float>(fraction * ln2)), static_cast<int>(integer));
}

}  // namespace

LogMaxScaler::LogMaxScaler(const Options& options) : options_(names::checked(options)) {
  check_scale_limits(Options::subject, options.max_scale, options.min_scale, options.max_scale);
  state_.scale = std::clamp(1.0f, options.min_scale, options.max_scale);
}

Decision LogMaxScaler::decide(const GradientSummary& summary) {
  if (summary.found_nonfinite) {
    learn(options_.bad_step_enters_as_magnitude ? power_of_two(options_.log_max) : options_.log_max);
    return Decision::skip;
  }
  const float largest = summary.max_abs * (1 / state_.scale);
  if (largest > 0) learn(log2_of(largest));
  return Decision::apply;
}

void LogMaxScaler::learn(double x) {
  const auto [beta1, beta2] = std::pair(options_.beta1, options_.beta2);
  state_.fast_mean = beta1 * state_.fast_mean + (1 - beta1) * x;
  state_.slow_mean = beta2 * state_.slow_mean + (1 - beta2) * x;
  state_.slow_square = beta2 * state_.slow_square + (1 - beta2) * (x * x);
  state_.beta1_power *= beta1;
  state_.beta2_power *= beta2;

  const double mean = state_.fast_mean / (1 - state_.beta1_power);
  const double slow_mean = state_.slow_mean / (1 - state_.beta2_power);
  const double variance = state_.slow_square / (1 - state_.beta2_power) - slow_mean * slow_mean;
  const double deviation = std::sqrt(std::max(0.0, variance));
  const float scale = power_of_two(16 - (mean + options_.overflow_std_dev * deviation));
  state_.scale = std::clamp(scale, options_.min_scale, options_.max_scale);
}

}  // namespace sim
