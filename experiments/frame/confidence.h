#pragma once
/// Means of a few runs, and how far they can be trusted.

#include <cstddef>
#include <limits>
#include <span>
#include <string>

namespace experiments {

/// t with P(|T| <= t) = 0.95 for Student's t distribution with that many degrees of freedom, at least 1.
/// Relative error below 1e-12 (compared with Boost.Math for 1 to 999); no libm, so the same bits everywhere.
///
/// Source: bisection of the finite sums for P, M. Abramowitz, I. A. Stegun, Handbook of Mathematical
/// Functions, 26.7.3 and 26.7.4.
double t_quantile_95(int degrees_of_freedom);

/// A mean of independent values and its 95 % t-interval, mean +- half_width: if the values are normally
/// distributed around a true mean, such intervals contain it in 95 of 100 cases. Of a single value deviation
/// and half_width are NaN; of values that are not all finite so is whatever has no finite value.
struct Estimate {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< sample standard deviation (n - 1)
  double half_width = 0;

  double lower() const { return mean - half_width; }
  double upper() const { return mean + half_width; }

  /// Whether the interval is evidence: of at least `enough_values` values, and wider than rounding makes one
  /// of values that are all the same.
  bool is_judged() const;
  bool excludes_zero() const { return lower() > 0 || upper() < 0; }

  /// The interval of two values would be 12.7 standard errors wide, or none where both happen to be the same.
  static constexpr std::size_t enough_values = 3;
};

/// Sums in the order of the values; at least one.
Estimate estimate(std::span<const double> values);

/// Estimates the mean of second[i] - first[i]; both have the same size.
Estimate estimate_difference(std::span<const double> first, std::span<const double> second);

/// Estimates the mean of second[i] / first[i] - 1, so that the spread of `first` counts as well.
Estimate estimate_relative_difference(std::span<const double> first, std::span<const double> second);

/// The largest share of `count` answers that guessing gives right, each with probability p: three standard
/// deviations above p, p + 3 sqrt(p (1 - p) / count).
double guessing_bound(double p, std::size_t count);

/// "+0.12" or "-0.12"; "0.00" where only the sign would be left.
std::string signed_text(double value, int decimals);

/// "0.04695 ± 0.00066", mean and half_width times `factor`; without the interval for a single value and "-"
/// for a mean that is not finite.
std::string with_interval(const Estimate& value, double factor, int decimals);

/// Shares in per cent with the interval of their mean, "96.84 ± 0.35"; where that would leave 0 to 100, and so can be
/// none of theirs, with the smallest and the largest of them: "86.20 (64.50 to 95.90)".
std::string percent_with_interval(std::span<const double> shares, int decimals);

/// A difference with its sign and, of enough values, its interval: "+0.12 [-0.30, 0.54]"; "-" as above. The interval ends at
/// the least that a difference can be, as -1 of a ratio less 1.
std::string signed_with_interval(const Estimate& difference, double factor, int decimals,
                                 double least = -std::numeric_limits<double>::infinity());

}  // namespace experiments
