#pragma once
/// Arithmetic of half by MPFR, in its way of emulating such formats: 11 digits, exponents of -23 to 16, and
/// subnormal numbers rounded again with the help of the first rounding's direction. It includes nothing of
/// the library.

#include <array>
#include <cstdint>

#include "tests/oracle/exact_half.h"

namespace oracle::mpfr {

/// What MPFR can round to; an Outcome for each, in this order. Every NaN is 0xfe00 here.
inline constexpr std::array<Direction, 4> directions{Direction::nearest_even, Direction::toward_zero,
                                                     Direction::toward_positive, Direction::toward_negative};
using Rounded = std::array<Outcome, directions.size()>;

Rounded add(std::uint16_t a, std::uint16_t b);
Rounded subtract(std::uint16_t a, std::uint16_t b);
Rounded multiply(std::uint16_t a, std::uint16_t b);
Rounded divide(std::uint16_t a, std::uint16_t b);
Rounded fma(std::uint16_t a, std::uint16_t b, std::uint16_t c);
Rounded convert(double value);

}  // namespace oracle::mpfr
