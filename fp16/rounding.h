#pragma once
/// How an operation rounds and what it does at the borders of a format; exception flags; and the one place
/// where a significand is rounded.

#include <cstdint>

#include "config.h"

namespace fp16 {

__extension__ using uint128 = unsigned __int128;

/// Rounding-direction attributes of IEEE 754-2019 clause 4.3; rounding to odd (Boldo and Melquiond,
/// "Emulation of FMA and correctly rounded sums", 2008), which loses nothing to a later rounding two or more
/// digits shorter; and stochastic rounding (Croci et al., "Stochastic rounding: implementation, error
/// analysis and applications", 2022) with random bits that the caller supplies.
enum class Rounding {
  nearest_even,     ///< roundTiesToEven
  nearest_away,     ///< roundTiesToAway
  toward_zero,      ///< roundTowardZero
  toward_positive,  ///< roundTowardPositive
  toward_negative,  ///< roundTowardNegative
  to_odd,           ///< an inexact value goes to its neighbour with an odd significand
  stochastic        ///< away from zero iff floor(fraction * 2^64) > random_bits, the fraction taken exactly
};

/// When a result counts as tiny, which with inexactness makes an underflow (IEEE 754-2019 clause 7.5).
enum class Tininess {
  after_rounding,  ///< rounded with an unbounded exponent range it stays below 2^emin (x86, RISC-V)
  before_rounding  ///< the exact result is below 2^emin (Arm)
};

/// Which NaN a result is. Where a format has one NaN for each sign, the canonical ones are positive and an
/// invalid operation gives the negative one under first_operand. The NaN that stands for an overflow in a
/// format without infinities has the sign of the result under every policy.
enum class NanPolicy {
  first_operand,     ///< the first NaN operand, quieted, with its sign and payload (x86); invalid: 0xFE00
  canonical_nvidia,  ///< always 0x7FFF, in other formats likewise all ones but the sign
  canonical_riscv    ///< always 0x7E00, in other formats likewise the positive quiet NaN without payload
};

/// Everything about an operation but its operands. The defaults are those of an x86 processor.
struct Attributes {
  Rounding rounding = Rounding::nearest_even;
  /// For stochastic rounding: uniform in 0 .. 2^64 - 1. Conversions from formats of at most 32 bits use the
  /// low 32 bits r, and compare with floor(fraction * 2^32).
  std::uint64_t random_bits = 0;
  /// Results that would be infinite become the largest finite number of their sign.
  bool saturate = false;
  /// Results that are tiny become zeros of their sign, with underflow and inexact, exact ones too (FTZ).
  bool flush_to_zero = false;
  /// Subnormal operands are read as zeros of their sign, without a flag (DAZ).
  bool denormals_are_zero = false;
  Tininess tininess = Tininess::after_rounding;
  NanPolicy nan_policy = NanPolicy::first_operand;

  friend constexpr bool operator==(const Attributes&, const Attributes&) = default;
};

/// The five exceptions of IEEE 754-2019 clause 7. Flags come back beside each value; nothing is kept between
/// calls.
struct Flags {
  bool inexact = false;
  bool underflow = false;  ///< tiny and inexact
  bool overflow = false;   ///< also: an infinity that the format or the attributes do not allow
  bool divide_by_zero = false;
  bool invalid = false;

  FP16_HD constexpr Flags& operator|=(Flags other) {
    inexact |= other.inexact;
    underflow |= other.underflow;
    overflow |= other.overflow;
    divide_by_zero |= other.divide_by_zero;
    invalid |= other.invalid;
    return *this;
  }
  FP16_HD friend constexpr Flags operator|(Flags a, Flags b) { return a |= b; }
  friend constexpr bool operator==(const Flags&, const Flags&) = default;
};

template <typename UInt>
struct RoundedSignificand {
  UInt value;
  bool inexact;
};

/// Where a number lies between two neighbours: what every rounding decision is made from.
struct Discarded {
  std::uint64_t leading;  ///< floor(fraction * 2^64) of the fraction of a unit in the last place
  bool more;              ///< whether the fraction is larger than leading / 2^64

  FP16_HD constexpr bool is_zero() const { return leading == 0 && !more; }
};

/// significand / 2^discarded_bits minus its integral part. `discarded_bits` >= 1.
template <typename UInt>
FP16_HD constexpr Discarded discarded_fraction(UInt significand, int discarded_bits) {
  constexpr int digits = 8 * sizeof(UInt);
  if (discarded_bits <= 64) {
    const auto low = static_cast<std::uint64_t>(significand);
    return {.leading = low << (64 - discarded_bits), .more = false};
  }
  const int dropped = discarded_bits - 64;
  if (dropped >= digits) return {.leading = 0, .more = significand != 0};
  const UInt kept = significand >> dropped;
  return {.leading = static_cast<std::uint64_t>(kept), .more = (kept << dropped) != significand};
}

/// Whether a value strictly between two neighbours goes to the one farther from zero. `odd`: the code of the
/// nearer one is odd.
FP16_HD constexpr bool rounds_away_from_zero(Discarded fraction, bool odd, bool negative,
                                             const Attributes& attributes) {
  constexpr std::uint64_t half = std::uint64_t{1} << 63;
  switch (attributes.rounding) {
    case Rounding::nearest_even:
      return fraction.leading > half || (fraction.leading == half && (fraction.more || odd));
    case Rounding::nearest_away:
      return fraction.leading >= half;
    case Rounding::toward_zero:
      return false;
    case Rounding::toward_positive:
      return !negative;
    case Rounding::toward_negative:
      return negative;
    case Rounding::to_odd:
      return !odd;
    case Rounding::stochastic:
      return fraction.leading > attributes.random_bits;
  }
  return false;
}

/// ±significand / 2^discarded_bits rounded to an integer, the sign kept apart. `discarded_bits` >= 1. The
/// lowest bit may be sticky (stand for any non-zero amount below it) when `discarded_bits` >= 2; for
/// stochastic rounding, when `discarded_bits` >= 65. `code_offset_is_odd`: the result is added to an odd
/// number to make a code, so that its parity is the opposite of the code's.
template <typename UInt>
FP16_HD constexpr RoundedSignificand<UInt> round_significand(UInt significand, int discarded_bits,
                                                             bool negative, const Attributes& attributes,
                                                             bool code_offset_is_odd = false) {
  constexpr int digits = 8 * sizeof(UInt);
  const UInt kept = discarded_bits < digits ? significand >> discarded_bits : 0;
  const Discarded fraction = discarded_fraction(significand, discarded_bits);
  if (fraction.is_zero()) return {.value = kept, .inexact = false};
  const bool odd = ((kept & 1) != 0) != code_offset_is_odd;
  return {.value = kept + rounds_away_from_zero(fraction, odd, negative, attributes), .inexact = true};
}

/// Whether a result beyond the largest finite number becomes infinite; otherwise it becomes that number
/// (IEEE 754-2019 clause 7.4; to odd never overflows to infinity, which is even). Stochastic rounding
/// overflows only when it has moved away from the largest finite number, or started beyond what would be its
/// successor.
FP16_HD constexpr bool overflows_to_infinity(bool negative, Rounding mode) {
  switch (mode) {
    case Rounding::nearest_even:
    case Rounding::nearest_away:
    case Rounding::stochastic:
      return true;
    case Rounding::toward_positive:
      return !negative;
    case Rounding::toward_negative:
      return negative;
    case Rounding::toward_zero:
    case Rounding::to_odd:
      return false;
  }
  return false;
}

}  // namespace fp16
