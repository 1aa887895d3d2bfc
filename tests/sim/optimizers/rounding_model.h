#pragma once
/// Rounding of doubles to the formats of updates by the C library, for slow models of optimizers.

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "fp16/formats.h"

namespace test {

/// `value` rounded to nearest-even.
inline double rounded(double value, fp16::Format format) {
  if (format == fp16::binary64) return value;
  if (format == fp16::binary32) return static_cast<float>(value);
  if (value == 0 || !std::isfinite(value)) return value;
  const bool binary16 = format == fp16::binary16;
  const int exponent = std::max(std::ilogb(value), binary16 ? -14 : -126);
  const double ulp = std::ldexp(1.0, exponent - (binary16 ? 10 : 7));
  const double nearest = std::nearbyint(value / ulp) * ulp;
  return std::fabs(nearest) >= std::ldexp(1.0, binary16 ? 16 : 128) ? std::copysign(HUGE_VAL, value)
                                                                    : nearest;
}

/// Values of binary32 that differ in magnitude by up to 2^-12.
inline std::vector<double> spread_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(size);
  for (double& value : values) {
    const int exponent = -static_cast<int>(random() % 12);
    value = static_cast<float>(std::ldexp(static_cast<int>(random() % 200001) - 100000.0, exponent) / 100000);
  }
  return values;
}

}  // namespace test
