#pragma once

#include <cstdint>

namespace sim {

/// base^exponent by repeated squaring, every product rounded once; base^0 = 1. Relative error below
/// 2.1 * exponent * 2^-53 while nothing under- or overflows: at most `exponent` - 1 factors of (1 + 2^-53)
/// for the squarings and one for each set bit.
constexpr double integer_power(double base, std::uint64_t exponent) {
  double power = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) power *= base;
    base *= base;
  }
  return power;
}

}  // namespace sim
