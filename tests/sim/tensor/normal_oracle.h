#pragma once
/// How far a claimed normal quantile is from the true one, by the distribution function of binary64 (libm).

#include <cmath>
#include <cstdint>
#include <numbers>

namespace sim {

inline constexpr double max_normal_relative_error = 5e-7;  ///< as sim/tensor/random.h states it

/// |value - quantile| / |value| for the quantile at (bits + 1/2) / 2^32, by one Newton step: the difference
/// in probability over the density. Near the middle and in either tail the probability is taken from the side
/// where it has no cancellation.
inline double normal_relative_error(std::uint32_t bits, double value) {
  const double from_start = std::ldexp(bits + 0.5, -32);
  const double scaled = value / std::numbers::sqrt2;
  double difference = 0;
  if (std::fabs(value) < 0.5) {
    difference = 0.5 * std::erf(scaled) - (from_start - 0.5);
  } else if (value < 0) {
    difference = 0.5 * std::erfc(-scaled) - from_start;
  } else {
    difference = (1 - from_start) - 0.5 * std::erfc(scaled);
  }
  const double density = std::exp(-scaled * scaled) * 0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2;
  return std::fabs(difference / density / value);
}

}  // namespace sim
