#include "sim/loss_scaling/adaptive_scaler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace sim {
namespace {

// The limit of a step whose gradients are all zero. An ordinary int, so that it survives in any text format.
constexpr int no_limit = 10'000;

}  // namespace

AdaptiveScaler::AdaptiveScaler(const Options& options) : options_(checked(options)), log2_scale_(0) {
  if (options.min_log2_scale > options.max_log2_scale) {
    throw std::invalid_argument(
        "scaler 'adaptive': min_log2_scale = " + std::to_string(options.min_log2_scale) +
        " is not allowed; allowed: at most max_log2_scale = " + std::to_string(options.max_log2_scale));
  }
  log2_scale_ = clamped(0);
}

float AdaptiveScaler::scale() const {
  return std::ldexp(1.0f, log2_scale_);
}

Decision AdaptiveScaler::update(const GradientSummary& summary) {
  limits_.push_back(limit_of(summary));
  if (limits_.size() > static_cast<std::size_t>(options_.window)) limits_.pop_front();
  const int limit = *std::ranges::min_element(limits_);
  log2_scale_ = clamped(limit == no_limit ? log2_scale_ + 1 : limit - options_.headroom);
  return summary.found_nonfinite ? Decision::skip : Decision::apply;
}

int AdaptiveScaler::limit_of(const GradientSummary& summary) const {
  const ExponentHistogram* exponents = summary.exponents;
  if (!summary.found_nonfinite && exponents == nullptr) {
    throw std::invalid_argument("scaler 'adaptive': a step came without the exponents of its gradients");
  }
  if (summary.found_nonfinite || exponents->infinite() + exponents->nan() > 0) return log2_scale_ - 1;
  const std::optional<int> headroom = exponents->log2_headroom();
  return headroom ? log2_scale_ + *headroom : no_limit;
}

int AdaptiveScaler::clamped(int log2_scale) const {
  return std::clamp(log2_scale, options_.min_log2_scale, options_.max_log2_scale);
}

NamedValues AdaptiveScaler::state() const {
  NamedValues state{{"log2_scale", log2_scale_}};
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    state.emplace_back("limit_" + std::to_string(i), limits_[i]);
  }
  return state;
}

void AdaptiveScaler::restore(const NamedValues& state) {
  const auto entry = [&state](std::size_t i, const std::string& name, const Interval& allowed) {
    if (state[i].first == name) {
      return checked_option<int>(Options::subject, name, state[i].second, allowed);
    }
    throw std::invalid_argument("scaler 'adaptive': saved state has '" + state[i].first + "' in place of '" +
                                name + "'");
  };
  if (state.empty() || state.size() > static_cast<std::size_t>(options_.window) + 1) {
    throw std::invalid_argument("scaler 'adaptive': saved state has " + std::to_string(state.size()) +
                                " entries; allowed: 1 to " + std::to_string(options_.window + 1));
  }
  const int log2_scale =
      entry(0, "log2_scale", closed_interval(options_.min_log2_scale, options_.max_log2_scale));
  std::deque<int> limits;
  for (std::size_t i = 1; i < state.size(); ++i) {
    limits.push_back(entry(i, "limit_" + std::to_string(i - 1), closed_interval(-no_limit, no_limit)));
  }
  log2_scale_ = log2_scale;
  limits_ = std::move(limits);
}

}  // namespace sim
