#pragma once
/// Numbers of the slow oracles: fractions with a power of two for a denominator, in integers of 128 bits, which
/// throw std::overflow_error where these are too short.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace oracle {

__extension__ using Wide = unsigned __int128;

/// significand * 2^exponent
struct Dyadic {
  Wide significand = 0;
  int exponent = 0;
};

template <typename UInt>
int bits_of(const UInt& value) {
  return value == 0 ? 0 : static_cast<int>(msb(value)) + 1;
}
template <>
inline int bits_of(const Wide& value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return static_cast<int>(high != 0 ? 64 + std::bit_width(high)
                                    : std::bit_width(static_cast<std::uint64_t>(value)));
}

inline Wide shifted(Wide value, int count) {
  if (value == 0) return 0;
  if (bits_of(value) + count > 128) throw std::overflow_error("the oracle's integers are too short");
  return value << count;
}

inline Wide product(Wide a, Wide b) {
  if (bits_of(a) + bits_of(b) > 128) throw std::overflow_error("the oracle's integers are too short");
  return a * b;
}

/// The sign of a * 2^a_exponent - b * 2^b_exponent.
template <typename UInt>
int order(UInt a, int a_exponent, UInt b, int b_exponent) {
  if (a == 0 || b == 0) return (a != 0) - (b != 0);
  const int a_bits = bits_of(a), b_bits = bits_of(b);
  if (a_bits + a_exponent != b_bits + b_exponent) return a_bits + a_exponent < b_bits + b_exponent ? -1 : 1;
  if (a_bits < b_bits) a <<= b_bits - a_bits;
  if (b_bits < a_bits) b <<= a_bits - b_bits;
  return a < b ? -1 : a > b;
}

/// With an odd significand, but for 0.
inline Dyadic shortest(Dyadic value) {
  while (value.significand != 0 && (value.significand & 1) == 0) {
    value.significand >>= 1;
    ++value.exponent;
  }
  return value.significand == 0 ? Dyadic{} : value;
}

inline Dyadic dyadic_of(double magnitude) {
  int exponent = 0;
  const auto significand = static_cast<std::uint64_t>(std::ldexp(std::frexp(magnitude, &exponent), 53));
  return shortest({.significand = significand, .exponent = exponent - 53});
}

/// a - b or a + b
inline Dyadic combined(const Dyadic& a, const Dyadic& b, bool subtract) {
  if (b.significand == 0) return a;
  if (a.significand == 0 && !subtract) return b;
  const int unit = std::min(a.exponent, b.exponent);
  const Wide x = shifted(a.significand, a.exponent - unit), y = shifted(b.significand, b.exponent - unit);
  return shortest({.significand = subtract ? x - y : x + y, .exponent = unit});
}

}  // namespace oracle
