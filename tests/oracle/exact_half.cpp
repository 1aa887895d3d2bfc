#include "tests/oracle/exact_half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <vector>

namespace oracle {
namespace {

using Integer = boost::multiprecision::cpp_int;

// All lengths are counted in units of 2^-26: every half, every midpoint of two halves, and every midpoint of
// the finer grid that decides tininess below 2^-14 is a whole number of units.
constexpr int unit_exponent = -26;
constexpr std::int64_t units_per_smallest = 4;
constexpr std::int64_t units_per_min_normal = std::int64_t{1} << 12;
constexpr std::int64_t far_beyond_overflow = std::int64_t{1} << 50;
constexpr std::uint16_t sign = 0x8000, infinity = 0x7c00, quiet = 0x0200, invalid_nan = 0xfe00;

/// Entry c is the value of code c; the entry of infinity's code is 2^16, what the next number would be.
/// Spacing starts at 2^-24 and doubles each time the values double, from 2^-13 on.
std::vector<std::int64_t> list_halves() {
  std::vector<std::int64_t> values{0};
  std::int64_t spacing = units_per_smallest;
  while (values.size() <= infinity) {
    values.push_back(values.back() + spacing);
    if (values.back() == 2048 * spacing) spacing *= 2;
  }
  return values;
}

const std::vector<std::int64_t>& halves() {
  static const std::vector<std::int64_t> values = list_halves();
  return values;
}

bool is_nan(std::uint16_t half) {
  return (half & ~sign) > infinity;
}
bool is_infinity(std::uint16_t half) {
  return (half & ~sign) == infinity;
}
bool is_zero(std::uint16_t half) {
  return (half & ~sign) == 0;
}
bool is_negative(std::uint16_t half) {
  return (half & sign) != 0;
}

/// A magnitude m with units <= m < units + 1; `more` unless m == units.
struct Magnitude {
  std::int64_t units;
  bool more;

  bool at_least(std::int64_t bound) const { return units >= bound; }
  bool above(std::int64_t bound) const { return units > bound || (units == bound && more); }
};

Magnitude measure(const Integer& whole_units, bool more) {
  if (whole_units > far_beyond_overflow) return {far_beyond_overflow, true};
  return {static_cast<std::int64_t>(whole_units), more};
}

Magnitude measure(const Rational& magnitude) {
  Integer quotient, remainder;
  divide_qr(Integer(numerator(magnitude) << -unit_exponent), Integer(denominator(magnitude)), quotient,
            remainder);
  return measure(quotient, remainder != 0);
}

bool rounds_to_upper(Direction direction, bool negative, std::size_t lower, const Magnitude& magnitude) {
  const std::int64_t midpoint = (halves()[lower] + halves()[lower + 1]) / 2;
  const bool tie = magnitude.at_least(midpoint) && !magnitude.above(midpoint);
  const bool lower_is_odd = lower % 2 == 1;
  switch (direction) {
    case Direction::nearest_even:
      return tie ? lower_is_odd : magnitude.above(midpoint);
    case Direction::nearest_away:
      return magnitude.at_least(midpoint);
    case Direction::toward_zero:
      return false;
    case Direction::toward_positive:
      return !negative;
    case Direction::toward_negative:
      return negative;
    case Direction::to_odd:
      return !lower_is_odd;
  }
  return false;
}

/// Whether 11 significant digits without a lower bound of the exponent would round the magnitude below 2^-14.
/// The last such number is two units below it, with an odd significand.
bool is_tiny(Direction direction, bool negative, const Magnitude& magnitude) {
  if (magnitude.at_least(units_per_min_normal)) return false;
  switch (direction) {
    case Direction::nearest_even:
    case Direction::nearest_away:
      return !magnitude.at_least(units_per_min_normal - 1);
    case Direction::toward_zero:
    case Direction::to_odd:
      return true;
    case Direction::toward_positive:
      return negative || !magnitude.above(units_per_min_normal - 2);
    case Direction::toward_negative:
      return !negative || !magnitude.above(units_per_min_normal - 2);
  }
  return true;
}

Outcome overflow(Direction direction, bool negative) {
  const bool stays_finite = direction == Direction::toward_zero || direction == Direction::to_odd ||
                            direction == (negative ? Direction::toward_positive : Direction::toward_negative);
  const int magnitude = stays_finite ? infinity - 1 : infinity;
  return {.bits = static_cast<std::uint16_t>(magnitude | (negative ? sign : 0)),
          .inexact = true,
          .overflow = true};
}

Outcome round(Direction direction, bool negative, const Magnitude& magnitude) {
  const auto above = std::ranges::upper_bound(halves(), magnitude.units);
  const auto lower = static_cast<std::size_t>(above - halves().begin()) - 1;
  if (lower == infinity) return overflow(direction, negative);
  const std::uint16_t sign_bit = negative ? sign : 0;
  if (!magnitude.above(halves()[lower])) return {.bits = static_cast<std::uint16_t>(lower | sign_bit)};

  const std::size_t chosen = lower + rounds_to_upper(direction, negative, lower, magnitude);
  if (chosen == infinity) return overflow(direction, negative);
  return {.bits = static_cast<std::uint16_t>(chosen | sign_bit),
          .inexact = true,
          .underflow = is_tiny(direction, negative, magnitude)};
}

Outcomes round_all(bool negative, const Magnitude& magnitude) {
  Outcomes outcomes;
  for (std::size_t i = 0; i < direction_count; ++i) {
    outcomes[i] = round(static_cast<Direction>(i), negative, magnitude);
  }
  return outcomes;
}

Outcomes everywhere(const Outcome& outcome) {
  Outcomes outcomes;
  outcomes.fill(outcome);
  return outcomes;
}

Outcomes exactly(int bits) {
  return everywhere({.bits = static_cast<std::uint16_t>(bits)});
}
Outcomes invalid() {
  return everywhere({.bits = invalid_nan, .invalid = true});
}

Outcomes round_all(const Rational& value) {
  return round_all(value < 0, measure(Rational(abs(value))));
}

/// A sum that is exactly zero, of terms of both signs.
Outcomes cancelled() {
  Outcomes outcomes = exactly(0);
  outcomes[static_cast<std::size_t>(Direction::toward_negative)].bits = sign;
  return outcomes;
}

bool any_nan(std::initializer_list<std::uint16_t> operands) {
  return std::ranges::any_of(operands, is_nan);
}

Outcomes first_nan(std::initializer_list<std::uint16_t> operands) {
  const std::uint16_t first = *std::ranges::find_if(operands, is_nan);
  const bool signalling =
      std::ranges::any_of(operands, [](std::uint16_t half) { return is_nan(half) && (half & quiet) == 0; });
  return everywhere({.bits = static_cast<std::uint16_t>(first | quiet), .invalid = signalling});
}

std::uint16_t negated(std::uint16_t half) {
  return half ^ sign;
}

int product_sign(std::uint16_t a, std::uint16_t b) {
  return (a ^ b) & sign;
}

}  // namespace

Rational exact_value(std::uint16_t half) {
  const Rational magnitude(halves()[half & ~sign], std::int64_t{1} << -unit_exponent);
  return is_negative(half) ? Rational(-magnitude) : magnitude;
}

Rational exact_value(double value) {
  int exponent = 0;
  const auto scaled = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  const Integer power = Integer(1) << std::abs(exponent);
  return exponent < 0 ? Rational(Integer(scaled), power) : Rational(Integer(scaled * power));
}

Outcomes from_rational(const Rational& value) {
  return round_all(value);
}

Outcomes from_binary64(std::uint64_t bits) {
  const auto value = std::bit_cast<double>(bits);
  const int sign_bit = std::signbit(value) ? sign : 0;
  if (std::isnan(value)) {
    const auto payload = static_cast<int>(bits >> 42 & 0x3ff);
    const bool signalling = (payload & quiet) == 0;
    return everywhere(
        {.bits = static_cast<std::uint16_t>(sign_bit | infinity | quiet | payload), .invalid = signalling});
  }
  if (std::isinf(value)) return exactly(sign_bit | infinity);
  return value == 0 ? exactly(sign_bit) : round_all(exact_value(value));
}

Outcomes from_binary32(std::uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  if (!std::isnan(value)) return from_binary64(std::bit_cast<std::uint64_t>(static_cast<double>(value)));
  const std::uint64_t sign_bit = bits >> 31;
  const std::uint64_t payload = bits & 0x7fffff;
  return from_binary64(sign_bit << 63 | std::uint64_t{0x7ff} << 52 | payload << 29);
}

Outcomes add(std::uint16_t a, std::uint16_t b) {
  if (any_nan({a, b})) return first_nan({a, b});
  if (is_infinity(a) && is_infinity(b)) return a == b ? exactly(a) : invalid();
  if (is_infinity(a)) return exactly(a);
  if (is_infinity(b)) return exactly(b);
  const Rational value = exact_value(a) + exact_value(b);
  if (value != 0) return round_all(value);
  return is_negative(a) == is_negative(b) ? exactly(a) : cancelled();
}

Outcomes subtract(std::uint16_t a, std::uint16_t b) {
  return any_nan({a, b}) ? first_nan({a, b}) : add(a, negated(b));
}

Outcomes multiply(std::uint16_t a, std::uint16_t b) {
  if (any_nan({a, b})) return first_nan({a, b});
  if (is_infinity(a) || is_infinity(b)) {
    return is_zero(a) || is_zero(b) ? invalid() : exactly(infinity | product_sign(a, b));
  }
  if (is_zero(a) || is_zero(b)) return exactly(product_sign(a, b));
  return round_all(Rational(exact_value(a) * exact_value(b)));
}

Outcomes divide(std::uint16_t a, std::uint16_t b) {
  if (any_nan({a, b})) return first_nan({a, b});
  if ((is_infinity(a) && is_infinity(b)) || (is_zero(a) && is_zero(b))) return invalid();
  if (is_infinity(a)) return exactly(infinity | product_sign(a, b));
  if (is_infinity(b) || is_zero(a)) return exactly(product_sign(a, b));
  if (is_zero(b)) {
    return everywhere(
        {.bits = static_cast<std::uint16_t>(infinity | product_sign(a, b)), .divide_by_zero = true});
  }
  return round_all(Rational(exact_value(a) / exact_value(b)));
}

Outcomes sqrt(std::uint16_t a) {
  if (is_nan(a)) return first_nan({a});
  if (is_zero(a)) return exactly(a);
  if (is_negative(a)) return invalid();
  if (is_infinity(a)) return exactly(a);
  // floor(sqrt(units of 2^-52)) is the root in whole units of 2^-26.
  const Integer square = Integer(halves()[a]) << -unit_exponent;
  Integer remainder;
  const Integer root = boost::multiprecision::sqrt(square, remainder);
  return round_all(false, measure(root, remainder != 0));
}

Outcomes fma(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  if (any_nan({a, b, c})) return first_nan({a, b, c});
  if ((is_infinity(a) && is_zero(b)) || (is_zero(a) && is_infinity(b))) return invalid();
  if (is_infinity(a) || is_infinity(b)) {
    const int product = infinity | product_sign(a, b);
    return is_infinity(c) && c != product ? invalid() : exactly(product);
  }
  if (is_infinity(c)) return exactly(c);
  const Rational value = exact_value(a) * exact_value(b) + exact_value(c);
  if (value != 0) return round_all(value);
  return product_sign(a, b) == (c & sign) ? exactly(c) : cancelled();
}

}  // namespace oracle
