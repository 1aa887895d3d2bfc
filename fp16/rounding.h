#pragma once
/// Rounding directions, exception flags, and the one place where a significand is rounded.

#include "fp16/config.h"

namespace fp16 {

/// Rounding-direction attributes of IEEE 754-2019 clause 4.3, and rounding to odd (Boldo and Melquiond,
/// "Emulation of FMA and correctly rounded sums", 2008), which loses nothing to a later rounding two or more
/// digits shorter.
enum class Rounding {
  nearest_even,     ///< roundTiesToEven
  nearest_away,     ///< roundTiesToAway
  toward_zero,      ///< roundTowardZero
  toward_positive,  ///< roundTowardPositive
  toward_negative,  ///< roundTowardNegative
  to_odd,           ///< an inexact value goes to its neighbour with an odd significand
};

/// The five exceptions of IEEE 754-2019 clause 7. Flags come back beside each value; nothing is kept between
/// calls.
struct Flags {
  bool inexact = false;
  bool underflow = false;  ///< tiny after rounding and inexact
  bool overflow = false;
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

/// ±significand / 2^discarded_bits rounded to an integer, the sign kept apart. `discarded_bits` >= 1. Once it
/// reaches the width of UInt, the top bit of `significand` must be clear, so that the fraction is certainly
/// below one half. The lowest bit may be sticky (stand for any non-zero amount below it) when
/// `discarded_bits` >= 2.
template <typename UInt>
FP16_HD constexpr RoundedSignificand<UInt> round_significand(UInt significand, int discarded_bits,
                                                             bool negative, Rounding mode) {
  constexpr int digits = 8 * sizeof(UInt);
  if (discarded_bits >= digits) {
    significand = significand != 0;
    discarded_bits = 2;
  }
  const UInt kept = significand >> discarded_bits;
  const UInt remainder = significand - (kept << discarded_bits);
  const UInt half = UInt{1} << (discarded_bits - 1);
  const bool odd = (kept & 1) != 0;
  if (remainder == 0) return {.value = kept, .inexact = false};

  bool away_from_zero = false;
  switch (mode) {
    case Rounding::nearest_even:
      away_from_zero = remainder > half || (remainder == half && odd);
      break;
    case Rounding::nearest_away:
      away_from_zero = remainder >= half;
      break;
    case Rounding::toward_zero:
      break;
    case Rounding::toward_positive:
      away_from_zero = !negative;
      break;
    case Rounding::toward_negative:
      away_from_zero = negative;
      break;
    case Rounding::to_odd:
      away_from_zero = !odd;
      break;
  }
  return {.value = kept + away_from_zero, .inexact = true};
}

/// Whether a result beyond the largest finite number becomes infinite; otherwise it becomes that number
/// (IEEE 754-2019 clause 7.4; to odd: the largest finite significand is odd).
FP16_HD constexpr bool overflows_to_infinity(bool negative, Rounding mode) {
  switch (mode) {
    case Rounding::nearest_even:
    case Rounding::nearest_away:
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
