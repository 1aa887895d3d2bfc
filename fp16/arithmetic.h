#pragma once
/// Addition, subtraction, multiplication, division, square root and fused multiply-add on codes, in integers.
///
/// Every function returns the exact result rounded once in the direction `mode`, with the flags of IEEE
/// 754-2019 clause 7 (tininess after rounding), for any format up to binary64.
///
/// NaN operands: the first in argument order, quieted; invalid only if one is signalling, so not for
/// infinity * 0 + quiet NaN, where the standard leaves the choice. Other invalid operations give
/// `default_nan_bits`. An exact zero sum of opposite signs is -0 toward_negative, else +0 (clause 6.3).
///
/// How it is known: binary16 against exact rationals in all six directions with flags (every square root,
/// 200,000 boundary-weighted operands of each other operation); binary32 and binary64 against the host's
/// arithmetic in its four directions with flags.

#include <compare>

#include "fp16/config.h"
#include "fp16/unpacked.h"

namespace fp16 {

namespace detail {

/// The same value with the leading bit of its significand at a fixed place: one bit above it for the carry of
/// a sum, and one that round_significand wants clear.
template <typename UInt>
FP16_HD constexpr Unpacked<UInt> normalized(const Unpacked<UInt>& value) {
  const int shift = static_cast<int>(8 * sizeof(UInt)) - 2 - bit_width(value.significand);
  return {.negative = value.negative,
          .exponent = value.exponent - shift,
          .significand = value.significand << shift};
}

template <typename UInt>
FP16_HD constexpr UInt shift_right_sticky(UInt significand, int shift) {
  if (shift == 0) return significand;
  if (shift >= static_cast<int>(8 * sizeof(UInt))) return significand != 0;
  const UInt kept = significand >> shift;
  return kept | ((kept << shift) != significand);
}

template <typename UInt>
FP16_HD constexpr Unpacked<UInt> product(const Unpacked<UInt>& a, const Unpacked<UInt>& b) {
  return {.negative = a.negative != b.negative,
          .exponent = a.exponent + b.exponent,
          .significand = a.significand * b.significand};
}

/// a + b, sticky. The operands are exact, and at least two low bits of their normalized significands are
/// zero: bits are lost only when the exponents differ by more than two, where cancellation removes at most
/// one leading bit and the sticky bit stays below the rounding position. When nothing is lost, the sum is
/// exact.
template <typename UInt>
FP16_HD constexpr Unpacked<UInt> sum(const Unpacked<UInt>& a, const Unpacked<UInt>& b, Rounding mode) {
  const bool zero_sign = a.negative == b.negative ? a.negative : mode == Rounding::toward_negative;
  if (a.significand == 0 && b.significand == 0)
    return {.negative = zero_sign, .exponent = 0, .significand = 0};
  if (a.significand == 0) return b;
  if (b.significand == 0) return a;

  Unpacked<UInt> large = normalized(a);
  Unpacked<UInt> small = normalized(b);
  const bool swap = large.exponent < small.exponent ||
                    (large.exponent == small.exponent && large.significand < small.significand);
  if (swap) {
    const Unpacked<UInt> kept = large;
    large = small;
    small = kept;
  }
  const UInt aligned = shift_right_sticky(small.significand, large.exponent - small.exponent);
  const UInt significand =
      large.negative == small.negative ? large.significand + aligned : large.significand - aligned;
  return {.negative = significand == 0 ? zero_sign : large.negative,
          .exponent = large.exponent,
          .significand = significand};
}

}  // namespace detail

/// a + b
template <const Format& F>
FP16_HD constexpr Result<F> add(Bits<F> a, Bits<F> b, Rounding mode = Rounding::nearest_even) {
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(a, b);
  if (is_infinite<F>(a) && is_infinite<F>(b) && a != b) return invalid_operation<F>();
  if (is_infinite<F>(a)) return {.bits = a, .flags = {}};
  if (is_infinite<F>(b)) return {.bits = b, .flags = {}};
  return round_pack<F>(detail::sum(unpack<F>(a), unpack<F>(b), mode), mode);
}

/// a - b; a NaN `b` keeps its sign.
template <const Format& F>
FP16_HD constexpr Result<F> subtract(Bits<F> a, Bits<F> b, Rounding mode = Rounding::nearest_even) {
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(a, b);
  return add<F>(a, static_cast<Bits<F>>(b ^ sign_mask<F>), mode);
}

/// a * b; infinity * 0 is invalid.
template <const Format& F>
FP16_HD constexpr Result<F> multiply(Bits<F> a, Bits<F> b, Rounding mode = Rounding::nearest_even) {
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(a, b);
  if (is_infinite<F>(a) || is_infinite<F>(b)) {
    if (is_zero<F>(a) || is_zero<F>(b)) return invalid_operation<F>();
    return {.bits = with_sign<F>(infinity_bits<F>, is_negative<F>(a) != is_negative<F>(b)), .flags = {}};
  }
  return round_pack<F>(detail::product(unpack<F>(a), unpack<F>(b)), mode);
}

/// a / b; 0 / 0 and infinity / infinity are invalid, finite / 0 is an infinity with divide_by_zero.
template <const Format& F>
FP16_HD constexpr Result<F> divide(Bits<F> a, Bits<F> b, Rounding mode = Rounding::nearest_even) {
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(a, b);
  const bool negative = is_negative<F>(a) != is_negative<F>(b);
  const Result<F> zero{.bits = with_sign<F>(0, negative), .flags = {}};
  const Result<F> infinity{.bits = with_sign<F>(infinity_bits<F>, negative), .flags = {}};
  if (is_infinite<F>(a)) return is_infinite<F>(b) ? invalid_operation<F>() : infinity;
  if (is_infinite<F>(b)) return zero;
  if (is_zero<F>(b)) {
    return is_zero<F>(a) ? invalid_operation<F>() : Result<F>{infinity.bits, {.divide_by_zero = true}};
  }
  if (is_zero<F>(a)) return zero;

  using UInt = WideSignificand<F>;
  const Unpacked<UInt> dividend = unpack<F>(a);
  const Unpacked<UInt> divisor = unpack<F>(b);
  // The quotient then has p+2 or p+3 bits: the significand, a rounding bit and the sticky bit.
  const int shift = F.precision + 2 + bit_width(divisor.significand) - bit_width(dividend.significand);
  const UInt numerator = dividend.significand << shift;
  const UInt quotient = numerator / divisor.significand;
  const UInt sticky = quotient * divisor.significand != numerator;
  return round_pack<F>(Unpacked<UInt>{.negative = negative,
                                      .exponent = dividend.exponent - divisor.exponent - shift,
                                      .significand = quotient | sticky},
                       mode);
}

/// The square root; sqrt(-0) is -0, of anything else negative it is invalid.
template <const Format& F>
FP16_HD constexpr Result<F> sqrt(Bits<F> a, Rounding mode = Rounding::nearest_even) {
  if (is_nan<F>(a)) return propagate_nan<F>(a);
  if (is_zero<F>(a)) return {.bits = a, .flags = {}};
  if (is_negative<F>(a)) return invalid_operation<F>();
  if (is_infinite<F>(a)) return {.bits = a, .flags = {}};

  using UInt = WideSignificand<F>;
  const Unpacked<UInt> value = unpack<F>(a);
  // The radicand gets 2p+3 or 2p+4 bits and an even exponent, so the root has p+2 bits.
  constexpr int root_bits = F.precision + 2;
  int shift = 2 * root_bits - bit_width(value.significand);
  shift -= (value.exponent - shift) & 1;
  const UInt radicand = value.significand << shift;
  UInt root = 0;
  for (int position = root_bits - 1; position >= 0; --position) {
    const UInt candidate = root | (UInt{1} << position);
    if (candidate * candidate <= radicand) root = candidate;
  }
  const UInt sticky = root * root != radicand;
  return round_pack<F>(
      Unpacked<UInt>{
          .negative = false, .exponent = (value.exponent - shift) / 2, .significand = root | sticky},
      mode);
}

/// a * b + c with one rounding.
template <const Format& F>
FP16_HD constexpr Result<F> fma(Bits<F> a, Bits<F> b, Bits<F> c, Rounding mode = Rounding::nearest_even) {
  if (is_nan<F>(a) || is_nan<F>(b) || is_nan<F>(c)) return propagate_nan<F>(a, b, c);
  if (is_infinite<F>(a) || is_infinite<F>(b)) {
    const Result<F> infinite_product = multiply<F>(a, b);
    return is_nan<F>(infinite_product.bits) ? infinite_product : add<F>(infinite_product.bits, c);
  }
  if (is_infinite<F>(c)) return {.bits = c, .flags = {}};
  return round_pack<F>(detail::sum(detail::product(unpack<F>(a), unpack<F>(b)), unpack<F>(c), mode), mode);
}

/// IEEE order: -0 equals +0, a NaN is unordered with everything.
template <const Format& F>
FP16_HD constexpr std::partial_ordering compare(Bits<F> a, Bits<F> b) {
  if (is_nan<F>(a) || is_nan<F>(b)) return std::partial_ordering::unordered;
  if (is_zero<F>(a) && is_zero<F>(b)) return std::partial_ordering::equivalent;
  if (is_negative<F>(a) != is_negative<F>(b)) return is_negative<F>(b) <=> is_negative<F>(a);
  return is_negative<F>(a) ? b <=> a : a <=> b;
}

}  // namespace fp16
