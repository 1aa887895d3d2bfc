#pragma once
/// The functions of half by MPFR, rounded to half in the way of exact_half.h. It includes nothing of the
/// library.

#include <cstdint>
#include <string_view>

#include "tests/oracle/exact_half.h"

namespace oracle {

/// An exact value as functions return it: rounded to half, and to odd in binary32. A NaN stands for an
/// invalid operation there, too, and is negative and without payload.
struct Rounded {
  Outcomes half;
  std::uint32_t binary32_to_odd;
};

/// The function of this name at `a`, which must not be a NaN. Throws std::out_of_range for an unknown name.
Rounded function_of_half(std::string_view name, std::uint16_t a);

/// Neither operand may be a NaN.
Rounded pow(std::uint16_t x, std::uint16_t y);
Rounded hypot(std::uint16_t x, std::uint16_t y);
Rounded atan2(std::uint16_t y, std::uint16_t x);

/// x^y rounded to odd.
std::uint32_t pow_to_odd(std::uint16_t x, std::uint16_t y);
std::uint32_t hypot_to_odd(std::uint16_t x, std::uint16_t y);
std::uint32_t atan2_to_odd(std::uint16_t y, std::uint16_t x);

}  // namespace oracle
