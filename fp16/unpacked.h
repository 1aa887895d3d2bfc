#pragma once
/// Numbers taken apart into sign, exponent and significand; put together again with one rounding. NaN rules.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "fp16/bits.h"
#include "fp16/config.h"
#include "fp16/rounding.h"

namespace fp16 {

__extension__ using uint128 = unsigned __int128;

/// A code and the exceptions that making it raised.
template <const Format& F>
struct Result {
  Bits<F> bits;
  Flags flags;

  friend constexpr bool operator==(const Result&, const Result&) = default;
};

/// The finite number (-1)^negative * significand * 2^exponent; the significand is any integer and keeps its
/// zeros. After an inexact step its lowest bit is sticky: an odd significand s stands for some value between
/// s-1 and s+1.
template <typename UInt>
struct Unpacked {
  bool negative;
  int exponent;
  UInt significand;
};

/// An integer of at least 2p + 4 bits: the radicand of a square root, or a product of two significands with
/// two bits to spare at each end.
template <const Format& F>
using WideSignificand = std::conditional_t<2 * F.precision + 4 <= 64, std::uint64_t, uint128>;

template <typename UInt>
FP16_HD constexpr int bit_width(UInt value) {
  if constexpr (sizeof(UInt) <= 8) {
    return static_cast<int>(std::bit_width(value));
  } else {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    const auto low = static_cast<std::uint64_t>(value);
    return static_cast<int>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(low));
  }
}

/// `bits` must be finite.
template <const Format& F, typename UInt = WideSignificand<F>>
FP16_HD constexpr Unpacked<UInt> unpack(Bits<F> bits) {
  const int biased_exponent = static_cast<int>(magnitude<F>(bits) >> F.trailing_bits());
  const UInt trailing = bits & trailing_mask<F>;
  const bool normal = biased_exponent != 0;
  return {.negative = is_negative<F>(bits),
          .exponent = F.emin_subnormal() + (normal ? biased_exponent - 1 : 0),
          .significand = normal ? trailing + min_normal_bits<F> : trailing};
}

/// Whether |value|, rounded to F's precision with an unbounded exponent range, stays below 2^emin.
template <const Format& F, typename UInt>
FP16_HD constexpr bool is_tiny_after_rounding(const Unpacked<UInt>& value, Rounding mode) {
  const int top_exponent = value.exponent + bit_width(value.significand) - 1;
  if (top_exponent != F.emin() - 1) return top_exponent < F.emin();
  const int discarded_bits = top_exponent - F.trailing_bits() - value.exponent;
  if (discarded_bits <= 0) return true;
  return bit_width(round_significand(value.significand, discarded_bits, value.negative, mode).value) <=
         F.precision;
}

/// The code of F nearest to `value` in the direction `mode`, rounded once; subnormals keep their full grid,
/// zero keeps its sign. Flags: inexact, overflow, and underflow with tininess detected after rounding, as x86
/// does (IEEE 754-2019 clauses 7.4 to 7.6). A sticky significand must be at least two bits wider than F's
/// precision.
template <const Format& F, typename UInt>
FP16_HD constexpr Result<F> round_pack(const Unpacked<UInt>& value, Rounding mode) {
  if (value.significand == 0) return {.bits = with_sign<F>(0, value.negative), .flags = {}};

  const int top_exponent = value.exponent + bit_width(value.significand) - 1;
  const int ulp_exponent = top_exponent < F.emin() ? F.emin_subnormal() : top_exponent - F.trailing_bits();
  const int discarded_bits = ulp_exponent - value.exponent;
  const RoundedSignificand<UInt> rounded =
      discarded_bits > 0 ? round_significand(value.significand, discarded_bits, value.negative, mode)
                         : RoundedSignificand<UInt>{value.significand << -discarded_bits, false};

  // Addition instead of insertion of the significand: its leading bit, or a carry out of it, moves the
  // exponent up.
  const Bits<F> code = static_cast<Bits<F>>(
      (static_cast<Bits<F>>(ulp_exponent - F.emin_subnormal()) << F.trailing_bits()) + rounded.value);
  if (top_exponent > F.emax() || code >= infinity_bits<F>) {
    const Bits<F> limit = overflows_to_infinity(value.negative, mode) ? infinity_bits<F> : max_finite_bits<F>;
    return {.bits = with_sign<F>(limit, value.negative), .flags = {.inexact = true, .overflow = true}};
  }
  const bool underflow = rounded.inexact && is_tiny_after_rounding<F>(value, mode);
  return {.bits = with_sign<F>(code, value.negative),
          .flags = {.inexact = rounded.inexact, .underflow = underflow}};
}

/// The first NaN in argument order, quieted, its sign and payload kept (the rule of x86's two-operand
/// instructions); invalid if any operand is a signalling NaN. At least one operand must be a NaN.
template <const Format& F>
FP16_HD constexpr Result<F> propagate_nan(Bits<F> a, Bits<F> b = 0, Bits<F> c = 0) {
  const Bits<F> first = is_nan<F>(a) ? a : is_nan<F>(b) ? b : c;
  const bool signalling = is_signalling_nan<F>(a) || is_signalling_nan<F>(b) || is_signalling_nan<F>(c);
  return {.bits = static_cast<Bits<F>>(first | quiet_bit<F>), .flags = {.invalid = signalling}};
}

/// What an operation without a meaningful result returns (IEEE 754-2019 clause 7.2).
template <const Format& F>
FP16_HD constexpr Result<F> invalid_operation() {
  return {.bits = default_nan_bits<F>, .flags = {.invalid = true}};
}

}  // namespace fp16
