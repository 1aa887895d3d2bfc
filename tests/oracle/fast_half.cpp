#include "tests/oracle/fast_half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>

namespace oracle::fast {
namespace {

constexpr std::uint16_t sign = 0x8000, infinity = 0x7c00, quiet = 0x0200, invalid_nan = 0xfe00;
constexpr std::uint16_t largest = 0x7bff, smallest_normal = 0x0400;
constexpr std::uint32_t binary32_two_to_16 = 0x47800000, binary32_infinity = 0x7f800000;

constexpr Packed inexact_flag = pack(0, true, false, false, false, false);
constexpr Packed underflow_flag = pack(0, false, true, false, false, false);
constexpr Packed overflow_flag = pack(0, false, false, true, false, false);
constexpr Packed divide_by_zero_flag = pack(0, false, false, false, true, false);
constexpr Packed invalid_flag = pack(0, false, false, false, false, true);

// Rounding. A magnitude lies some eighths above the code below it: an even number of them stands for a whole
// number of quarters of the gap to the next code, an odd one for anything between two of those. Quarters,
// because the numbers of 11 digits below 2^-14 lie twice as close as halves do, and have midpoints.

/// Codes whose neighbour above is reached in the same way.
enum Zone { tiny, last_subnormal, normal, last_finite, beyond };
constexpr std::size_t zone_count = 5;

constexpr bool goes_to_code_above(Direction direction, bool negative, bool odd, int eighths) {
  switch (direction) {
    case Direction::nearest_even:
      return eighths > 4 || (eighths == 4 && odd);
    case Direction::nearest_away:
      return eighths >= 4;
    case Direction::toward_zero:
      return false;
    case Direction::toward_positive:
      return !negative;
    case Direction::toward_negative:
      return negative;
    case Direction::to_odd:
      return !odd;
  }
  return false;
}

/// Above the last subnormal code, 11 digits with an unbounded exponent give an odd number at four eighths and
/// 2^-14 at eight.
constexpr bool is_tiny(Zone zone, Direction direction, bool negative, int eighths) {
  if (zone != last_subnormal) return zone == tiny;
  return eighths <= 4 || !goes_to_code_above(direction, negative, true, 2 * (eighths - 4));
}

/// What to add to the code below to get the outcome, flags and all.
constexpr Packed step(Zone zone, Direction direction, bool negative, bool odd, int eighths) {
  if (zone == beyond) {
    const bool infinite = direction == Direction::nearest_even || direction == Direction::nearest_away ||
                          direction == (negative ? Direction::toward_negative : Direction::toward_positive);
    return (inexact_flag | overflow_flag) - !infinite;
  }
  if (eighths == 0) return 0;
  const bool above = goes_to_code_above(direction, negative, odd, eighths);
  const bool overflows = zone == last_finite && above;
  const bool underflows = is_tiny(zone, direction, negative, eighths);
  return above + inexact_flag + (overflows ? overflow_flag : 0) + (underflows ? underflow_flag : 0);
}

constexpr std::size_t step_index(Zone zone, bool negative, bool odd, unsigned eighths) {
  return static_cast<std::size_t>(zone) * 32 + negative * 16 + odd * 8 + eighths;
}

constexpr std::array<PackedOutcomes, zone_count* 32> steps = [] {
  std::array<PackedOutcomes, zone_count * 32> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (std::size_t k = 0; k < direction_count; ++k) {
      table[i][k] = step(static_cast<Zone>(i / 32), static_cast<Direction>(k), (i & 16) != 0, (i & 8) != 0,
                         static_cast<int>(i & 7));
    }
  }
  return table;
}();

constexpr Zone zone_of(std::uint32_t code) {
  return static_cast<Zone>((code >= smallest_normal - 1u) + (code >= smallest_normal) + (code >= largest) +
                           (code > largest));
}

/// Four times the code below plus the quarters of the gap above it, and whether that is not all.
struct Place {
  std::uint32_t quarters;
  bool more;
};

Place place_of(double magnitude) {
  if (magnitude < 0x1p-14) {
    const double scaled = magnitude * 0x1p26;
    const auto quarters = static_cast<std::uint32_t>(scaled);
    return {.quarters = quarters, .more = quarters != scaled};
  }
  constexpr std::uint64_t end = 4 * infinity;
  const auto bits = std::bit_cast<std::uint64_t>(magnitude);
  const std::uint64_t quarters = (bits >> 40) - (std::uint64_t{1023 - 15} << 12);
  return {.quarters = static_cast<std::uint32_t>(std::min(quarters, end)), .more = bits << 24 != 0};
}

/// `value` + `rest`, of which only the sign of `rest` counts: its magnitude is below half an ulp. `value` is
/// finite and not zero.
PackedOutcomes round(double value, double rest) {
  auto magnitude = std::bit_cast<std::uint64_t>(std::abs(value));
  const bool negative = value < 0;
  if (rest != 0 && (rest < 0) != negative) --magnitude;
  Place place = place_of(std::bit_cast<double>(magnitude));
  place.more |= rest != 0;
  const std::uint32_t code = place.quarters / 4;
  const unsigned eighths = place.quarters % 4 * 2 + place.more;
  PackedOutcomes outcomes = steps[step_index(zone_of(code), negative, code % 2 != 0, eighths)];
  for (Packed& outcome : outcomes) outcome += code | (negative ? sign : 0);
  return outcomes;
}

PackedOutcomes everywhere(Packed outcome) {
  PackedOutcomes outcomes;
  outcomes.fill(outcome);
  return outcomes;
}

PackedOutcomes invalid() {
  return everywhere(invalid_nan | invalid_flag);
}

/// A sum that is exactly zero, of terms of both signs.
PackedOutcomes cancelled() {
  PackedOutcomes outcomes{};
  outcomes[static_cast<std::size_t>(Direction::toward_negative)] = sign;
  return outcomes;
}

bool is_nan(std::uint16_t half) {
  return (half & ~sign) > infinity;
}
bool is_infinite(std::uint16_t half) {
  return (half & ~sign) == infinity;
}
bool is_zero(std::uint16_t half) {
  return (half & ~sign) == 0;
}
bool is_finite(std::uint16_t half) {
  return (half & infinity) != infinity;
}

std::uint16_t sign_of_product(std::uint16_t a, std::uint16_t b) {
  return (a ^ b) & sign;
}

bool any_nan(std::initializer_list<std::uint16_t> operands) {
  return std::ranges::any_of(operands, is_nan);
}

PackedOutcomes first_nan(std::initializer_list<std::uint16_t> operands) {
  Packed outcome = 0;
  for (const std::uint16_t operand : operands) {
    if (!is_nan(operand)) continue;
    if ((outcome & 0xffff) == 0) outcome |= operand | quiet;
    if ((operand & quiet) == 0) outcome |= invalid_flag;
  }
  return everywhere(outcome);
}

/// The value of a half; of infinity what it would be if it were finite.
double value_of(std::uint16_t half) {
  const int magnitude = half & ~sign;
  const double value = magnitude < smallest_normal
                           ? magnitude * 0x1p-24
                           : std::bit_cast<double>((std::uint64_t{1023 - 15} << 52) +
                                                   (static_cast<std::uint64_t>(magnitude) << 42));
  return (half & sign) != 0 ? -value : value;
}

PackedOutcomes sum_with_specials(std::uint16_t a, std::uint16_t b) {
  if (any_nan({a, b})) return first_nan({a, b});
  if (is_infinite(a) && is_infinite(b) && a != b) return invalid();
  return everywhere(is_infinite(a) ? a : b);
}

PackedOutcomes product_with_specials(std::uint16_t a, std::uint16_t b) {
  if (any_nan({a, b})) return first_nan({a, b});
  if (is_zero(a) || is_zero(b)) return invalid();
  return everywhere(infinity | sign_of_product(a, b));
}

/// One of them is special, or `b` is zero.
PackedOutcomes quotient_with_specials(std::uint16_t a, std::uint16_t b) {
  if (any_nan({a, b})) return first_nan({a, b});
  const std::uint16_t product_sign = sign_of_product(a, b);
  if (is_infinite(a)) return is_infinite(b) ? invalid() : everywhere(infinity | product_sign);
  if (is_infinite(b)) return everywhere(product_sign);
  return is_zero(a) ? invalid() : everywhere(infinity | product_sign | divide_by_zero_flag);
}

PackedOutcomes fma_with_specials(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  if (any_nan({a, b, c})) return first_nan({a, b, c});
  if (is_finite(a) && is_finite(b)) return everywhere(c);
  if (is_zero(a) || is_zero(b)) return invalid();
  return is_finite(c) ? everywhere(infinity | sign_of_product(a, b))
                      : sum_with_specials(infinity | sign_of_product(a, b), c);
}

/// A NaN or an infinity given by its sign and the leading 10 bits behind its exponent.
PackedOutcomes from_special(std::uint16_t sign_bit, std::uint16_t leading, bool is_nan) {
  if (!is_nan) return everywhere(sign_bit | infinity);
  const bool signalling = (leading & quiet) == 0;
  return everywhere((sign_bit | infinity | quiet | leading) + (signalling ? invalid_flag : 0));
}

}  // namespace

PackedOutcomes add(std::uint16_t a, std::uint16_t b) {
  if (!is_finite(a) || !is_finite(b)) return sum_with_specials(a, b);
  const double sum = value_of(a) + value_of(b);
  if (sum == 0) return a == b ? everywhere(a) : cancelled();
  return round(sum, 0);
}

PackedOutcomes subtract(std::uint16_t a, std::uint16_t b) {
  return is_nan(b) ? sum_with_specials(a, b) : add(a, b ^ sign);
}

PackedOutcomes multiply(std::uint16_t a, std::uint16_t b) {
  if (!is_finite(a) || !is_finite(b)) return product_with_specials(a, b);
  const double product = value_of(a) * value_of(b);
  return product == 0 ? everywhere(sign_of_product(a, b)) : round(product, 0);
}

PackedOutcomes divide(std::uint16_t a, std::uint16_t b) {
  if (!is_finite(a) || !is_finite(b) || is_zero(b)) return quotient_with_specials(a, b);
  if (is_zero(a)) return everywhere(sign_of_product(a, b));
  // A quotient of 11-digit numbers that is no number of 13 digits is farther from all of those than 2^-26 of
  // itself, so that double's rounding cannot bring it there.
  return round(value_of(a) / value_of(b), 0);
}

PackedOutcomes fma(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  if (!is_finite(a) || !is_finite(b) || !is_finite(c)) return fma_with_specials(a, b, c);
  const double product = value_of(a) * value_of(b), addend = value_of(c);
  const double sum = product + addend;
  if (sum == 0) return sign_of_product(a, b) == (c & sign) ? everywhere(c) : cancelled();
  // TwoSum (Knuth)
  const double addend_in_sum = sum - product;
  const double error = (product - (sum - addend_in_sum)) + (addend - addend_in_sum);
  return round(sum, error);
}

PackedOutcomes from_binary32(std::uint32_t bits) {
  const auto sign_bit = static_cast<std::uint16_t>(bits >> 16 & sign);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= binary32_infinity)
    return from_special(sign_bit, magnitude >> 13 & 0x3ff, magnitude > binary32_infinity);
  return magnitude == 0 ? everywhere(sign_bit) : round(std::bit_cast<float>(bits), 0);
}

PackedOutcomes from_binary64(std::uint64_t bits) {
  const auto sign_bit = static_cast<std::uint16_t>(bits >> 48 & sign);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffff;
  if (magnitude >= 0x7ff0000000000000)
    return from_special(sign_bit, magnitude >> 42 & 0x3ff, magnitude > 0x7ff0000000000000);
  return magnitude == 0 ? everywhere(sign_bit) : round(std::bit_cast<double>(bits), 0);
}

std::uint32_t fraction_of_binary32(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= binary32_two_to_16) return 0;
  const double value = std::bit_cast<float>(magnitude);
  const auto code = static_cast<std::uint16_t>(place_of(value).quarters / 4);
  const double gap = value_of(code + 1) - value_of(code);
  return static_cast<std::uint32_t>((value - value_of(code)) / gap * 0x1p32);
}

std::uint16_t from_binary32_stochastically(std::uint32_t bits, std::uint32_t random) {
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > binary32_infinity) return static_cast<std::uint16_t>(from_binary32(bits)[0]);
  const auto sign_bit = static_cast<std::uint16_t>(bits >> 16 & sign);
  if (magnitude >= binary32_two_to_16) return sign_bit | infinity;
  const std::uint32_t code = place_of(std::bit_cast<float>(magnitude)).quarters / 4;
  return static_cast<std::uint16_t>(sign_bit | (code + (fraction_of_binary32(bits) > random)));
}

}  // namespace oracle::fast
