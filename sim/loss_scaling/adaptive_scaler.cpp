#include "sim/loss_scaling/adaptive_scaler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace sim {
namespace {

bool overflowed(const GradientSummary& summary) {
  return summary.found_nonfinite || summary.exponents->infinite() + summary.exponents->nan() > 0;
}

}  // namespace

AdaptiveScaler::AdaptiveScaler(const Options& options) : options_(names::checked(options)), log2_scale_(0) {
  if (options.min_log2_scale > options.max_log2_scale) {
    throw names::OptionError(Options::subject, "min_log2_scale", options.min_log2_scale,
                             "at most max_log2_scale = " + names::number_text(options.max_log2_scale));
  }
  log2_scale_ = std::clamp(0, options.min_log2_scale, options.max_log2_scale);
  flushed_share_.resize(static_cast<std::size_t>(options.max_log2_scale - options.min_log2_scale + 1));
}

float AdaptiveScaler::scale() const {
  return std::ldexp(1.0f, log2_scale_);
}

bool AdaptiveScaler::wants_twin(const GradientSummary& summary) const {
  return steps_until_twin_ == 0 || overflowed(summary);
}

Decision AdaptiveScaler::decide(const GradientSummary& summary) {
  require(summary.twin != nullptr || !wants_twin(summary), "the twin that it wanted");
  steps_until_twin_ = std::max(0, steps_until_twin_ - 1);
  if (!is_beyond_cure(summary)) learn(summary);
  return summary.found_nonfinite ? Decision::skip : Decision::apply;
}

bool AdaptiveScaler::is_beyond_cure(const GradientSummary& summary) const {
  if (summary.twin == nullptr) return false;
  if (!summary.twin->finite) return true;
  const std::optional<int> twin_limit = summary.twin->exponents->log2_headroom();
  return overflowed(summary) && twin_limit && log2_scale_ < *twin_limit - options_.max_gap;
}

void AdaptiveScaler::learn(const GradientSummary& summary) {
  if (summary.twin != nullptr) {
    steps_until_twin_ = options_.twin_every - 1;
    remember_flushing(*summary.twin->exponents);
  }
  if (const std::optional<int> limit = limit_of(summary)) remember_limit(*limit);
  if (!limits_.empty()) log2_scale_ = best_log2_scale();
}

std::optional<int> AdaptiveScaler::limit_of(const GradientSummary& summary) const {
  std::optional<int> limit;
  if (overflowed(summary)) {
    limit = log2_scale_ - 1;
  } else if (const std::optional<int> headroom = summary.exponents->log2_headroom()) {
    limit = log2_scale_ + *headroom;
  }
  const std::optional<int> twin_limit =
      summary.twin != nullptr ? summary.twin->exponents->log2_headroom() : std::nullopt;
  return limit && twin_limit ? std::min(limit, twin_limit) : limit ? limit : twin_limit;
}

void AdaptiveScaler::remember_limit(int limit) {
  limits_.push_back(limit);
  if (limits_.size() > static_cast<std::size_t>(options_.window)) limits_.pop_front();
}

void AdaptiveScaler::remember_flushing(const fp16::ExponentHistogram& exponents) {
  const auto nonzero = static_cast<double>(exponents.nonzero_finite());
  if (nonzero == 0) return;
  for (int m = options_.min_log2_scale; m <= options_.max_log2_scale; ++m) {
    flushed_share_[static_cast<std::size_t>(m - options_.min_log2_scale)] =
        static_cast<double>(exponents.flushed_at_scale(m)) / nonzero;
  }
}

int AdaptiveScaler::best_log2_scale() const {
  int best = options_.min_log2_scale;
  double least = std::numeric_limits<double>::infinity();
  for (int m = options_.min_log2_scale; m <= options_.max_log2_scale; ++m) {
    const auto lost_steps = std::ranges::count_if(
        limits_, [&](int limit) { return m > std::max(limit - options_.headroom, options_.min_log2_scale); });
    const double loss = flushed_share_[static_cast<std::size_t>(m - options_.min_log2_scale)] +
                        static_cast<double>(lost_steps) / static_cast<double>(limits_.size());
    if (loss > least) continue;
    least = loss;
    best = m;
  }
  return best;
}

names::NamedValues AdaptiveScaler::state() const {
  names::NamedValues state{{"log2_scale", log2_scale_}, {"steps_until_twin", steps_until_twin_}};
  for (std::size_t i = 0; i < flushed_share_.size(); ++i) {
    state.emplace_back("flushed_share_" + std::to_string(i), flushed_share_[i]);
  }
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    state.emplace_back("limit_" + std::to_string(i), limits_[i]);
  }
  return state;
}

void AdaptiveScaler::restore(const names::NamedValues& state) {
  AdaptiveScaler restored(options_);
  std::size_t next = 0;
  const auto take = [&]<class Number>(const std::string& name, Number& value,
                                      const names::Interval& allowed) {
    const std::string found = next < state.size() ? "'" + state[next].first + "'" : "nothing";
    if (found != "'" + name + "'") {
      throw std::invalid_argument("scaler 'adaptive': saved state has " + found + " in place of '" + name +
                                  "'");
    }
    value = names::checked_option<Number>(Options::subject, name, state[next++].second, allowed);
  };
  take("log2_scale", restored.log2_scale_,
       names::closed_interval(options_.min_log2_scale, options_.max_log2_scale));
  take("steps_until_twin", restored.steps_until_twin_, names::closed_interval(0, options_.twin_every - 1));
  for (std::size_t i = 0; i < flushed_share_.size(); ++i) {
    take("flushed_share_" + std::to_string(i), restored.flushed_share_[i], names::closed_interval(0, 1));
  }
  for (int i = 0; next < state.size(); ++i) {
    if (i == options_.window) {
      throw std::invalid_argument("scaler 'adaptive': saved state has more than window = " +
                                  std::to_string(options_.window) + " limits");
    }
    take("limit_" + std::to_string(i), restored.limits_.emplace_back(),
         names::closed_interval(-10'000, 10'000));
  }
  *this = std::move(restored);
}

}  // namespace sim
