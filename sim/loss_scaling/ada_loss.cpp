#include "sim/loss_scaling/ada_loss.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

namespace sim {
namespace {

/// The sum of positive terms, each made from the one before by next(term, n), n = 1, 2, ...
template <class Next>
double series(double first, Next next) {
  double sum = first;
  double term = first;
  for (int n = 1; term > sum * 0x1p-56; ++n) {
    term = next(term, n);
    sum += term;
  }
  return sum;
}

/// e^x for x >= 0, by its Taylor series; infinite where a term or the sum is.
double exponential(double x) {
  return series(1, [x](double term, int n) { return term * x / n; });
}

double square(double x) {
  return x * x;
}

}  // namespace

double erfinv(double x) {
  assert(-1 < x && x < 1);
  constexpr double half_sqrt_pi = 0x1.c5bf891b4ef6ap-1;
  const double target = std::fabs(x) * half_sqrt_pi;
  // e^(y^2) integral of e^(-t^2) over 0 .. y is the sum of 2^n y^(2n+1) / (1 * 3 * ... * (2n+1)), so that no
  // term cancels another. erf is concave, so that Newton's iterates from 0 rise to the root.
  for (double y = 0;;) {
    const double y2 = square(y);
    const double integral = series(y, [y2](double term, int n) { return term * 2 * y2 / (2 * n + 1); });
    const double next = y + (target * exponential(y2) - integral);
    if (!(next > y)) return std::copysign(y, x);
    y = next;
  }
}

AdaLoss::AdaLoss(const Options& options)
    : options_(names::checked(options)),
      normal_quotient_(std::sqrt(2.0) * erfinv(options.underflow_probability)),
      lognormal_quantile_(std::sqrt(2.0) * erfinv(2 * options.underflow_probability - 1)) {
  if (options.u_min >= options.u_max) {
    throw names::OptionError(Options::subject, "u_min", options.u_min,
                             "below u_max = " + names::number_text(options.u_max));
  }
}

LayerNeeds AdaLoss::needs() const {
  switch (options_.method) {
    case AdaLossMethod::approx_range:
      return {.moments = true, .magnitudes = true};
    case AdaLossMethod::approx_range_product:
      return {.moments = true, .magnitudes = true, .weights = true};
    case AdaLossMethod::approx_range_lognormal:
      return {.log_moments = true, .magnitudes = true};
    case AdaLossMethod::element_wise_range:
      return {.products = true};
    case AdaLossMethod::abs_range:
      return {.magnitudes = true, .weights = true};
    case AdaLossMethod::fixed:
      return {};
  }
  return {};
}

LayerScale AdaLoss::scale(std::string_view layer, const LayerGradient& gradient) {
  LayerState& state = layers_.try_emplace(std::string(layer)).first->second;
  if (state.age == 0) state.alpha = unbounded(gradient);
  return {
      .factor = bounded(state.alpha, gradient.scale), .applies_to_weights = false, .divisor = gradient.scale};
}

double AdaLoss::unbounded(const LayerGradient& layer) const {
  if (options_.method == AdaLossMethod::fixed) return options_.fixed_scale;
  const Range range = range_of(layer);
  const bool usable = range.low > 0 && std::isfinite(range.low) && std::isfinite(range.high);
  return usable ? std::min(std::max(range.u_min / range.low, 1.0), range.u_max / range.high) : 1;
}

AdaLoss::Range AdaLoss::range_of(const LayerGradient& layer) const {
  const TensorStatistics& delta = layer.gradient;
  const TensorStatistics& weights = layer.weights;
  const auto fan_out = static_cast<double>(layer.fan_out);
  const double u_min = options_.u_min;
  const double u_max = options_.u_max;
  const double max_product = double{delta.max_abs} * weights.max_abs;
  switch (options_.method) {
    case AdaLossMethod::approx_range:
      return {normal_quotient_ * delta.standard_deviation, delta.max_abs, u_min, u_max};
    case AdaLossMethod::approx_range_product: {
      const double variance = (square(delta.standard_deviation) + square(delta.mean)) *
                              (square(weights.standard_deviation) + square(weights.mean));
      const double sigma = std::sqrt(variance) * std::sqrt(0.5 * fan_out);
      return {normal_quotient_ * sigma, max_product, u_min, u_max / fan_out};
    }
    case AdaLossMethod::approx_range_lognormal: {
      if (delta.log_standard_deviation == 0) return {};
      const double log_low = delta.log_mean + delta.log_standard_deviation * lognormal_quantile_;
      return {log_low < 0 ? 1 / exponential(-log_low) : exponential(log_low), delta.max_abs, u_min, u_max};
    }
    case AdaLossMethod::element_wise_range:
      return {layer.min_abs_product, layer.max_abs_product, u_min, u_max / fan_out};
    case AdaLossMethod::abs_range: {
      const double min_product = double{delta.min_abs} * weights.min_abs;
      if (min_product == 0) return {};
      return {std::max(min_product, 1e-15), max_product, u_min / fan_out, u_max / fan_out};
    }
    case AdaLossMethod::fixed:
      break;
  }
  return {};
}

double AdaLoss::bounded(double alpha, double scale) const {
  const double capped = std::min({alpha, options_.accumulated_cap / scale, options_.scale_cap});
  return options_.power_of_two ? std::ldexp(1.0, std::ilogb(capped)) : capped;
}

double AdaLoss::joined(std::span<const BranchGradient> branches) const {
  return joined_scale(branches, options_.u_max);
}

Decision AdaLoss::update(std::span<const LayerOutcome> layers) {
  for (auto& [layer, state] : layers_) state.age = (state.age + 1) % options_.recompute_interval;
  const bool bad = std::ranges::any_of(layers, &LayerOutcome::found_nonfinite);
  return bad && options_.skip_nonfinite ? Decision::skip : Decision::apply;
}

names::NamedValues AdaLoss::state() const {
  return keyed_values(layers_);
}

void AdaLoss::restore(const names::NamedValues& state) {
  layers_ = keyed_states_from<LayerState>(state);
}

}  // namespace sim
