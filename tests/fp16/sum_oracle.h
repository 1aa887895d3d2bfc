#pragma once
/// What sums and dot products are judged by: exact rationals, rounded without the library; arithmetic of the
/// exact half that collects its flags; arrays of halves that are hard to add up.

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "fp16/rounding.h"
#include "tests/oracle/exact_half.h"
#include "tests/oracle/hard_cases.h"

namespace oracle {

using Halves = std::vector<std::uint16_t>;

/// A number of at most 53 binary digits that rounds to half as `value` does in every direction: `value` with
/// 52 or 53 digits, rounded to odd. |value| must be zero or within the normal range of double.
inline double rounded_to_odd(const Rational& value) {
  using Integer = boost::multiprecision::cpp_int;
  if (value == 0) return 0;
  const Integer top = abs(numerator(value)), bottom = denominator(value);
  const int shift = 52 + static_cast<int>(msb(bottom)) - static_cast<int>(msb(top));
  const Integer dividend = shift > 0 ? Integer(top << shift) : top;
  const Integer divisor = shift < 0 ? Integer(bottom << -shift) : bottom;
  Integer quotient, remainder;
  divide_qr(dividend, divisor, quotient, remainder);
  if (remainder != 0) bit_set(quotient, 0);
  const double magnitude = std::ldexp(static_cast<double>(static_cast<std::int64_t>(quotient)), -shift);
  return value < 0 ? -magnitude : magnitude;
}

/// `value` rounded to half in each direction; it must not be zero.
inline Outcomes round_to_half(const Rational& value) {
  return from_binary64(std::bit_cast<std::uint64_t>(rounded_to_odd(value)));
}

/// Whether `result` is `exact` rounded by a mode of IEEE 754; neither overflows.
template <typename Real>
bool is_rounded(Real result, const Rational& exact, fp16::Rounding mode) {
  using Code = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  const Rational value = exact_value(static_cast<double>(result));
  if (value == exact) return true;
  const bool is_below = value < exact;
  const Real infinity = std::numeric_limits<Real>::infinity();
  const Real other = std::nextafter(result, is_below ? infinity : -infinity);
  const Rational other_value = exact_value(static_cast<double>(other));
  if (is_below ? other_value <= exact : other_value >= exact) return false;

  const Rational midpoint = (value + other_value) / 2;
  const bool is_tie = exact == midpoint;
  const bool is_nearer = !is_tie && (exact < midpoint) == is_below;
  switch (mode) {
    case fp16::Rounding::nearest_even:
      return is_nearer || (is_tie && std::bit_cast<Code>(result) % 2 == 0);
    case fp16::Rounding::nearest_away:
      return is_nearer || (is_tie && std::fabs(result) > std::fabs(other));
    case fp16::Rounding::toward_zero:
      return std::fabs(result) < std::fabs(other);
    case fp16::Rounding::toward_positive:
      return !is_below;
    case fp16::Rounding::toward_negative:
      return is_below;
    case fp16::Rounding::to_odd:
      return std::bit_cast<Code>(result) % 2 == 1;
    case fp16::Rounding::stochastic:
      break;
  }
  return false;
}

/// The exact half's arithmetic in one direction, with the flags of all that was computed.
class HalfMachine {
 public:
  explicit HalfMachine(std::size_t direction) : direction_(direction) {}

  std::uint16_t add(std::uint16_t a, std::uint16_t b) { return take(oracle::add(a, b)); }
  std::uint16_t subtract(std::uint16_t a, std::uint16_t b) { return take(oracle::subtract(a, b)); }
  std::uint16_t multiply(std::uint16_t a, std::uint16_t b) { return take(oracle::multiply(a, b)); }
  std::uint16_t fma(std::uint16_t a, std::uint16_t b, std::uint16_t c) { return take(oracle::fma(a, b, c)); }

  Outcome finish(std::uint16_t bits) const {
    Outcome result = flags_;
    result.bits = bits;
    return result;
  }

 private:
  std::uint16_t take(const Outcomes& outcomes) {
    const Outcome& outcome = outcomes[direction_];
    flags_.inexact |= outcome.inexact;
    flags_.underflow |= outcome.underflow;
    flags_.overflow |= outcome.overflow;
    flags_.divide_by_zero |= outcome.divide_by_zero;
    flags_.invalid |= outcome.invalid;
    return outcome.bits;
  }

  std::size_t direction_;
  Outcome flags_;
};

/// Arrays of halves, of five kinds in turn.
class HardArrays {
 public:
  explicit HardArrays(std::uint64_t seed) : random_(seed), cases_(seed + 1) {}

  Halves next(std::size_t size) {
    const int kind = turn_++ % 5;
    return kind == 4 ? special(size) : finite(size, kind);
  }

  /// Halves of magnitudes from 2^-24 up to 2^16, up to 2^10, about 1, or of pairs that cancel but for some of them.
  Halves finite(std::size_t size, int kind) {
    Halves result;
    for (std::size_t i = 0; i < size; ++i) {
      const auto sign = static_cast<std::uint16_t>(random_.below(2) << 15);
      const int magnitude = kind == 0   ? random_.below(0x7c00)
                            : kind == 2 ? 0x3000 + random_.below(0x1400)
                                        : random_.below(0x6400);
      const bool cancels = kind == 3 && i % 2 == 1 && random_.below(4) != 0;
      result.push_back(cancels ? static_cast<std::uint16_t>(result.back() ^ 0x8000)
                               : static_cast<std::uint16_t>(magnitude | sign));
    }
    return kind == 3 ? shuffled(result) : result;
  }

  Halves shuffled(Halves values) {
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[static_cast<std::size_t>(random_.below(static_cast<int>(i)))]);
    return values;
  }

  int below(int bound) { return random_.below(bound); }

 private:
  /// Few values that are not finite among those at the borders of the classes.
  Halves special(std::size_t size) {
    Halves result;
    while (result.size() < size) {
      const std::uint16_t code = cases_.next();
      if ((code & 0x7c00) != 0x7c00 || random_.below(8) == 0) result.push_back(code);
    }
    return result;
  }

  RandomBits random_;
  HardHalves cases_;
  int turn_ = 0;
};

/// gamma(n) = n u / (1 - n u) of Higham 2002, section 3.1, with u = 2^-precision.
inline Rational gamma(std::size_t n, int precision = 11) {
  const Rational nu(n, std::int64_t{1} << precision);
  return nu / (1 - nu);
}

}  // namespace oracle
