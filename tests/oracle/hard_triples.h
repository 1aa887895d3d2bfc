#pragma once
/// Boundary-weighted operands of one operation and of conversions to half.

#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/oracle/fast_half.h"
#include "tests/oracle/hard_cases.h"

namespace oracle {

/// How a and b, and a * b and c, are related: half are unrelated, a quarter have near exponents, and a quarter nearly
/// the same magnitude (cancellation).
struct HardTriple {
  std::uint16_t a, b, c;
};

class HardTriples {
 public:
  explicit HardTriples(std::uint64_t seed) : cases_(seed), choices_(~seed) {}

  HardTriple next() {
    const std::uint16_t a = cases_.next();
    const std::uint16_t b = related_to(a);
    return {a, b, related_to(static_cast<std::uint16_t>(fast::multiply(a, b)[0]))};
  }

 private:
  std::uint16_t related_to(std::uint16_t other) {
    const int choice = choices_.below(4);
    return choice < 2 ? cases_.next() : choice == 2 ? cases_.near(other) : cases_.beside(other);
  }

  HardHalves cases_;
  RandomBits choices_;
};

/// A number at most two ulps of its own format from a half or from an eighth of the way to the next one; or
/// any boundary-weighted number.
template <typename Number, typename Codes>
class NumbersBesideHalves {
 public:
  explicit NumbersBesideHalves(std::uint64_t seed) : codes_(seed), halves_(seed), choices_(~seed) {}

  Codes next() {
    if (choices_.below(4) == 0) return codes_.next();
    const int half = halves_.next();
    const int exponent = (half >> 10) & 31, trailing = half & 1023;
    const int ulp_exponent = (exponent == 0 ? 1 : exponent) - 25;
    const int eighths = 8 * (exponent == 0 ? trailing : 1024 + trailing) + choices_.below(8);
    const auto magnitude = std::bit_cast<Codes>(static_cast<Number>(std::ldexp(eighths, ulp_exponent - 3)));
    const Codes sign = static_cast<Codes>(half >> 15) << (8 * sizeof(Codes) - 1);
    return (magnitude + static_cast<Codes>(choices_.below(5)) - 2) ^ sign;
  }

 private:
  HardCases<Codes, sizeof(Codes) == 4 ? 23 : 52> codes_;
  HardHalves halves_;
  RandomBits choices_;
};

using FloatsBesideHalves = NumbersBesideHalves<float, std::uint32_t>;
using DoublesBesideHalves = NumbersBesideHalves<double, std::uint64_t>;

}  // namespace oracle
