#pragma once
/// log2 for records, by our own logarithm: libm's last bits differ between processors.

#include <cmath>

#include "fp16/elementary.h"

namespace sim {

/// log2 of |x|; exact for powers of two, else within 2e-7. Minus infinity for 0, infinity and NaN pass.
inline double log2_of(double x) {
  if (x == 0 || !std::isfinite(x)) return std::log2(std::fabs(x));
  constexpr double log2_e = 0x1.71547652b82fep+0;
  int exponent;
  const double significand = 2 * std::frexp(std::fabs(x), &exponent);  // in [1, 2)
  return exponent - 1 + static_cast<double>(fp16::log(static_cast<float>(significand))) * log2_e;
}

}  // namespace sim
