#include "sim/loss_scaling/upper_bin_scaler.h"

#include <algorithm>
#include <cmath>

namespace sim {
namespace {

constexpr int largest_exponent = 15;  // 65504 = (2 - 2^-10) 2^15

}  // namespace

UpperBinScaler::UpperBinScaler(const UpperBinScheduler& scheduler, const UpperBinRule& rule)
    : scheduler_(scheduler), rule_(rule), state_{.scale = rule.init_scale} {
  int exponent;
  if (std::frexp(rule.bin_edge_location, &exponent) != 0.5) {
    throw names::OptionError(scheduler.subject(), "bin_edge_location", rule.bin_edge_location,
                             "powers of two, whose edges the exponents of the gradients resolve");
  }
  check_scale_limits(scheduler.subject(), rule.init_scale, 0, rule.max_scale);
  if (rule.refuses && rule.init_scale * rule.growth_factor >= rule.max_scale) {
    throw names::OptionError(
        scheduler.subject(), "init_scale", rule.init_scale,
        "times growth_factor less than max_scale = " + names::number_text(rule.max_scale));
  }
}

float UpperBinScaler::scale() const {
  const bool clips = !rule_.refuses && rule_.max_scale > 0;
  return clips ? std::min(state_.scale, rule_.max_scale) : state_.scale;
}

Decision UpperBinScaler::decide(const GradientSummary& summary) {
  state_.steps += 1;
  const bool due = state_.steps == rule_.update_period;
  if (due || rule_.accumulate_statistics) {
    state_.upper += static_cast<double>(upper_count(*summary.exponents));
    state_.total += static_cast<double>(summary.exponents->total());
  }
  if (due) move();
  return Decision::apply;
}

std::uint64_t UpperBinScaler::upper_count(const fp16::ExponentHistogram& exponents) const {
  const int edge = largest_exponent + std::ilogb(rule_.bin_edge_location);
  std::uint64_t count = exponents.octave(edge).near_next + exponents.infinite() + exponents.nan();
  for (int above = edge + 1; above <= fp16::ExponentHistogram::max_exponent; ++above) {
    count += exponents.octave(above).total;
  }
  return count;
}

void UpperBinScaler::move() {
  const bool too_many = state_.upper > rule_.threshold * state_.total;
  const auto moved =
      static_cast<float>(state_.scale * (too_many ? rule_.backoff_factor : rule_.growth_factor));
  const bool refused = rule_.refuses && (moved < 1 || moved >= rule_.max_scale);
  state_ = {.scale = refused ? state_.scale : moved};
}

}  // namespace sim
