#pragma once
/// A fast half of its own: results in the host's double, exact, or near enough to round like the exact ones;
/// and a rounding that looks up what to add to the code below. It includes nothing of the library, and is
/// itself held to exact_half.h and to MPFR.

#include <array>
#include <cstdint>

#include "tests/oracle/exact_half.h"

namespace oracle::fast {

/// An Outcome in one number: its bits, and above them its flags.
using Packed = std::uint32_t;

constexpr Packed pack(std::uint16_t bits, bool inexact, bool underflow, bool overflow, bool divide_by_zero,
                      bool invalid) {
  return bits | Packed{inexact} << 16 | Packed{underflow} << 17 | Packed{overflow} << 18 |
         Packed{divide_by_zero} << 19 | Packed{invalid} << 20;
}
constexpr Outcome unpack(Packed packed) {
  return {.bits = static_cast<std::uint16_t>(packed),
          .inexact = (packed >> 16 & 1) != 0,
          .underflow = (packed >> 17 & 1) != 0,
          .overflow = (packed >> 18 & 1) != 0,
          .divide_by_zero = (packed >> 19 & 1) != 0,
          .invalid = (packed >> 20 & 1) != 0};
}

/// One for each Direction, in the order of the enumerators.
using PackedOutcomes = std::array<Packed, direction_count>;

PackedOutcomes add(std::uint16_t a, std::uint16_t b);
PackedOutcomes subtract(std::uint16_t a, std::uint16_t b);
PackedOutcomes multiply(std::uint16_t a, std::uint16_t b);
PackedOutcomes divide(std::uint16_t a, std::uint16_t b);
PackedOutcomes fma(std::uint16_t a, std::uint16_t b, std::uint16_t c);
/// Conversions from the bits of a binary32 or binary64 number.
PackedOutcomes from_binary32(std::uint32_t bits);
PackedOutcomes from_binary64(std::uint64_t bits);

/// The conversion whose result moves away from zero iff floor(fraction * 2^32) > random.
std::uint16_t from_binary32_stochastically(std::uint32_t bits, std::uint32_t random);
/// That floor; 0 from 2^16 on, where there is no next half.
std::uint32_t fraction_of_binary32(std::uint32_t bits);

}  // namespace oracle::fast
