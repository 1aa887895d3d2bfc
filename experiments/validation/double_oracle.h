#pragma once
/// Operations on binary16 codes in double arithmetic, rounded once by code of its own: independent of the
/// integers of fp16/. NaN results are 0x7FFF, as NVIDIA's.
///
/// Why double is enough: sums, differences and products of two binary16 numbers are exact. Quotients, square
/// roots and a * b + c are rounded to 53 bits first, and none of them lies so close to a midpoint of two
/// neighbours, without being it, that those 53 bits could reach it (53 >= 2 * 11 + 2; of a * b + c the
/// distance is at least 2^-40 of it, as where 2^-24 is added to a midpoint below 2^16).

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace experiments::validation::double_oracle {

enum class Direction { nearest_even, toward_zero, up, down };

inline constexpr std::uint16_t canonical_nan = 0x7FFF;

/// Whether the number between two neighbours goes to the one farther from zero; `rest` in units of their
/// distance.
inline bool goes_away(double rest, bool odd, bool negative, Direction direction) {
  switch (direction) {
    case Direction::nearest_even:
      return rest > 0.5 || (rest == 0.5 && odd);
    case Direction::toward_zero:
      return false;
    case Direction::up:
      return rest > 0 && !negative;
    case Direction::down:
      return rest > 0 && negative;
  }
  return false;
}

/// 2^exponent, of normal numbers only.
inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

inline int floor_log2(double magnitude) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(magnitude) >> 52) - 1023;
}

inline double decode(std::uint16_t code) {
  const int exponent = code >> 10 & 31;
  const int fraction = code & 0x3FF;
  double magnitude = exponent == 0 ? fraction * 0x1p-24 : (1024 + fraction) * power_of_two(exponent - 25);
  if (exponent == 31)
    magnitude =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return code & 0x8000 ? -magnitude : magnitude;
}

inline std::uint16_t encode(double value, Direction direction = Direction::nearest_even) {
  if (std::isnan(value)) return canonical_nan;
  const bool negative = std::signbit(value);
  const int sign = negative ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7C00);
  if (magnitude >= 65536) {
    const bool away = goes_away(0.75, true, negative, direction);
    return static_cast<std::uint16_t>(sign | (away ? 0x7C00 : 0x7BFF));
  }
  const int exponent = magnitude < 0x1p-14 ? -14 : floor_log2(magnitude);
  const double units = magnitude * power_of_two(10 - exponent);
  const int whole = static_cast<int>(units);
  const bool away = goes_away(units - whole, whole % 2 != 0, negative, direction);
  // A carry into the exponent, and from there to infinity, is what the code of the next number says.
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + whole + away));
}

/// `value` is a binary16 number, and what is asked for the integer that it rounds to.
inline double to_integral(double value, Direction direction) {
  if (!std::isfinite(value)) return value;
  const double magnitude = std::fabs(value);
  const double whole = std::floor(magnitude);
  const bool away = goes_away(magnitude - whole, std::fmod(whole, 2) != 0, std::signbit(value), direction);
  return std::copysign(whole + away, value);
}

}  // namespace experiments::validation::double_oracle
