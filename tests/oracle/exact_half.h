#pragma once
/// A slow half of its own: exact values are rationals, and rounding looks for the neighbours in the sorted
/// list of all finite halves. It includes nothing of the library.

#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>

namespace oracle {

using Rational = boost::multiprecision::cpp_rational;

enum class Direction { nearest_even, nearest_away, toward_zero, toward_positive, toward_negative, to_odd };
inline constexpr std::size_t direction_count = 6;

struct Outcome {
  std::uint16_t bits = 0;
  bool inexact = false;
  bool underflow = false;
  bool overflow = false;
  bool divide_by_zero = false;
  bool invalid = false;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// One outcome for each Direction, in the order of the enumerators.
using Outcomes = std::array<Outcome, direction_count>;

/// `half` must be finite.
Rational exact_value(std::uint16_t half);
/// `value` must be finite.
Rational exact_value(double value);

/// Conversion of a number; zero is +0.
Outcomes from_rational(const Rational& value);
/// Conversions from the bits of a binary32 or binary64 number.
Outcomes from_binary32(std::uint32_t bits);
Outcomes from_binary64(std::uint64_t bits);

Outcomes add(std::uint16_t a, std::uint16_t b);
Outcomes subtract(std::uint16_t a, std::uint16_t b);
Outcomes multiply(std::uint16_t a, std::uint16_t b);
Outcomes divide(std::uint16_t a, std::uint16_t b);
Outcomes sqrt(std::uint16_t a);
Outcomes fma(std::uint16_t a, std::uint16_t b, std::uint16_t c);

}  // namespace oracle
