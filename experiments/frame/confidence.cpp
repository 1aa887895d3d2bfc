#include "experiments/frame/confidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace experiments {
namespace {

/// For x >= 0, by atan x = 2 atan(x / (1 + sqrt(1 + x^2))) until x < 0.1, where the series is left with less
/// than 1e-20 after ten terms.
double arc_tangent(double x) {
  double multiple = 1;
  for (; x >= 0.1; multiple *= 2) x /= 1 + std::sqrt(1 + x * x);
  double sum = 0;
  for (int k = 9; k >= 0; --k) sum = 1.0 / (2 * k + 1) - x * x * sum;
  return multiple * x * sum;
}

/// P(|T| <= t).
double probability_within(double t, int degrees_of_freedom) {
  const double tangent = t / std::sqrt(degrees_of_freedom);
  const double cosine_square = 1 / (1 + tangent * tangent);
  const double cosine = std::sqrt(cosine_square), sine = tangent * cosine;
  const bool odd = degrees_of_freedom % 2 == 1;
  double term = odd ? cosine : 1, sum = 0;
  for (int power = odd ? 1 : 0; power <= degrees_of_freedom - 2; power += 2) {
    sum += term;
    term *= cosine_square * (power + 1) / (power + 2);
  }
  return odd ? 2 / std::numbers::pi * (arc_tangent(tangent) + sine * sum) : sine * sum;
}

}  // namespace

double t_quantile_95(int degrees_of_freedom) {
  assert(degrees_of_freedom >= 1);
  double lower = 1, upper = 13;  // of one degree of freedom it is 12.7, of infinitely many 1.96
  for (;;) {
    const double middle = (lower + upper) / 2;
    if (middle == lower || middle == upper) return middle;
    (probability_within(middle, degrees_of_freedom) < 0.95 ? lower : upper) = middle;
  }
}

bool Estimate::is_judged() const {
  constexpr double rounding = 1e-9;
  return count >= enough_values && std::isfinite(half_width) && half_width > rounding * std::abs(mean);
}

Estimate estimate(std::span<const double> values) {
  assert(!values.empty());
  const auto count = static_cast<double>(values.size());
  constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  Estimate result{.count = values.size(), .mean = 0, .deviation = undefined, .half_width = undefined};
  for (const double value : values) result.mean += value;
  result.mean /= count;
  if (values.size() == 1) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / (count - 1));
  result.half_width =
      t_quantile_95(static_cast<int>(values.size()) - 1) * result.deviation / std::sqrt(count);
  return result;
}

Estimate estimate_difference(std::span<const double> first, std::span<const double> second) {
  assert(first.size() == second.size());
  std::vector<double> differences(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) differences[i] = second[i] - first[i];
  return estimate(differences);
}

Estimate estimate_relative_difference(std::span<const double> first, std::span<const double> second) {
  assert(first.size() == second.size());
  std::vector<double> excesses(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) excesses[i] = second[i] / first[i] - 1;
  return estimate(excesses);
}

double guessing_bound(double p, std::size_t count) {
  return p + 3 * std::sqrt(p * (1 - p) / static_cast<double>(count));
}

std::string signed_text(double value, int decimals) {
  const std::string text = fmt::format("{:+.{}f}", value, decimals);
  return text.find_first_of("123456789") == std::string::npos && std::isfinite(value) ? text.substr(1) : text;
}

std::string with_interval(const Estimate& value, double factor, int decimals) {
  if (!std::isfinite(value.mean)) return "-";
  std::string text = fmt::format("{:.{}f}", factor * value.mean, decimals);
  if (std::isfinite(value.half_width)) text += fmt::format(" ± {:.{}f}", factor * value.half_width, decimals);
  return text;
}

std::string percent_with_interval(std::span<const double> shares, int decimals) {
  const Estimate mean = estimate(shares);
  if (!(mean.lower() < 0 || mean.upper() > 1)) return with_interval(mean, 100, decimals);
  const auto [least, most] = std::ranges::minmax(shares);
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", 100 * mean.mean, decimals, 100 * least, decimals,
                     100 * most, decimals);
}

std::string signed_with_interval(const Estimate& difference, double factor, int decimals, double least) {
  if (!std::isfinite(difference.mean)) return "-";
  const auto bound = [&](double value) {
    const std::string text = signed_text(factor * value, decimals);
    return text.starts_with('+') ? text.substr(1) : text;
  };
  std::string text = signed_text(factor * difference.mean, decimals);
  if (difference.count >= Estimate::enough_values && std::isfinite(difference.half_width))
    text += fmt::format(" [{}, {}]", bound(std::max(difference.lower(), least)), bound(difference.upper()));
  return text;
}

}  // namespace experiments
