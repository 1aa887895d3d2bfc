#pragma once
/// Addition, subtraction, multiplication, division, square root and fused multiply-add on codes, in integers.
///
/// Every function returns the exact result rounded once as `attributes` say, with the flags of IEEE 754-2019
/// clause 7, for any format but those of scales.
///
/// NaN operands: the NaN that `attributes.nan_policy` chooses; invalid only if one is signalling, so not for
/// infinity * 0 + quiet NaN, where the standard leaves the choice. Other invalid operations give
/// `default_nan`. An exact zero sum of opposite signs is -0 toward_negative, else +0 (clause 6.3). What a
/// format does not have, an infinity, a NaN or -0: see `infinite_result`, `invalid_operation`, `with_sign`.
///
/// How it is known: against exact rationals, in all seven roundings with flags, FTZ, DAZ, saturation, both
/// kinds of tininess and every NaN policy, over all pairs (up to 6 bits: all triples) of the formats of up to
/// 8 bits; binary16 in all six deterministic directions with flags (every square root, 200,000
/// boundary-weighted operands of each other operation); binary32 and binary64 against the host's arithmetic
/// in its four directions with flags.

#include "config.h"
#include "unpacked.h"

namespace fp16 {

namespace detail {

/// A value with the leading bit of its significand at a fixed place: one bit above it for the carry of
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
FP16_HD constexpr Unpacked<UInt> sum(const Unpacked<UInt>& a, const Unpacked<UInt>& b, Rounding rounding) {
  const bool zero_sign = a.negative == b.negative ? a.negative : rounding == Rounding::toward_negative;
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

/// Bits that quotients and roots have below the last place: a rounding bit and a sticky one, or for
/// stochastic rounding the 64 that are compared with the random ones, and what a sticky bit needs.
template <typename UInt>
inline constexpr int extra_bits = sizeof(UInt) == sizeof(uint128) ? 66 : 2;

/// a / b, sticky; neither is zero.
template <const Format& F, typename UInt>
FP16_HD constexpr Unpacked<UInt> quotient(const Unpacked<UInt>& a, const Unpacked<UInt>& b) {
  // First p+2 or p+3 bits, then the others from the remainder, which is below 2^p.
  const int shift = F.precision + 2 + bit_width(b.significand) - bit_width(a.significand);
  const UInt numerator = a.significand << shift;
  UInt significand = numerator / b.significand;
  UInt remainder = numerator - significand * b.significand;
  constexpr int more_bits = extra_bits<UInt> - 2;
  if constexpr (more_bits > 0) {
    const UInt next = (remainder << more_bits) / b.significand;
    remainder = (remainder << more_bits) - next * b.significand;
    significand = significand << more_bits | next;
  }
  return {.negative = a.negative != b.negative,
          .exponent = a.exponent - b.exponent - shift - more_bits,
          .significand = significand | (remainder != 0)};
}

/// The square root of a positive number, sticky, digit by digit.
template <const Format& F, typename UInt>
FP16_HD constexpr Unpacked<UInt> square_root(const Unpacked<UInt>& a) {
  constexpr int root_bits = F.precision + extra_bits<UInt>;
  const int odd_exponent = a.exponent & 1;
  const UInt radicand = a.significand << odd_exponent;
  const int digit_pairs = (bit_width(radicand) + 1) / 2;
  UInt root = 0, remainder = 0;
  for (int i = 1; i <= root_bits; ++i) {
    const UInt pair = i <= digit_pairs ? (radicand >> 2 * (digit_pairs - i)) & 3 : 0;
    remainder = remainder << 2 | pair;
    const UInt trial = root << 2 | 1;
    root <<= 1;
    if (remainder >= trial) {
      remainder -= trial;
      root |= 1;
    }
  }
  return {.negative = false,
          .exponent = (a.exponent - odd_exponent) / 2 - (root_bits - digit_pairs),
          .significand = root | (remainder != 0)};
}

/// compute<UInt>() rounded once, with an integer wide enough for the rounding that `attributes` want: a
/// sticky bit must lie below all that stochastic rounding looks at.
template <const Format& F, typename Compute>
FP16_HD constexpr Result<F> rounded(const Attributes& attributes, Compute compute) {
  if (attributes.rounding == Rounding::stochastic)
    return round_pack<F>(compute.template operator()<uint128>(), attributes);
  return round_pack<F>(compute.template operator()<WideSignificand<F>>(), attributes);
}

}  // namespace detail

/// a + b
template <const Format& F>
FP16_HD constexpr Result<F> add(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  b = read_operand<F>(b, attributes);
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(attributes, a, b);
  if (is_infinite<F>(a) && is_infinite<F>(b) && a != b) return invalid_operation<F>(attributes);
  if (is_infinite<F>(a) || is_infinite<F>(b))
    return infinite_result<F>(is_negative<F>(is_infinite<F>(a) ? a : b), attributes);
  return detail::rounded<F>(attributes, [&]<typename UInt>() {
    return detail::sum(unpack<F, UInt>(a), unpack<F, UInt>(b), attributes.rounding);
  });
}

/// a - b; a NaN `b` keeps its sign.
template <const Format& F>
FP16_HD constexpr Result<F> subtract(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(attributes, a, b);
  return add<F>(a, negate<F>(b), attributes);
}

/// a * b; infinity * 0 is invalid.
template <const Format& F>
FP16_HD constexpr Result<F> multiply(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  b = read_operand<F>(b, attributes);
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(attributes, a, b);
  if (is_infinite<F>(a) || is_infinite<F>(b)) {
    if (is_zero<F>(a) || is_zero<F>(b)) return invalid_operation<F>(attributes);
    return infinite_result<F>(is_negative<F>(a) != is_negative<F>(b), attributes);
  }
  return detail::rounded<F>(
      attributes, [&]<typename UInt>() { return detail::product(unpack<F, UInt>(a), unpack<F, UInt>(b)); });
}

/// a / b; 0 / 0 and infinity / infinity are invalid, finite / 0 is an infinity with divide_by_zero.
template <const Format& F>
FP16_HD constexpr Result<F> divide(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  b = read_operand<F>(b, attributes);
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(attributes, a, b);
  if ((is_zero<F>(a) && is_zero<F>(b)) || (is_infinite<F>(a) && is_infinite<F>(b)))
    return invalid_operation<F>(attributes);
  const bool negative = is_negative<F>(a) != is_negative<F>(b);
  if (is_infinite<F>(a)) return infinite_result<F>(negative, attributes);
  if (is_zero<F>(b)) return infinite_result<F>(negative, attributes, {.divide_by_zero = true});
  if (is_zero<F>(a) || is_infinite<F>(b)) return {.bits = with_sign<F>(0, negative), .flags = {}};
  return detail::rounded<F>(attributes, [&]<typename UInt>() {
    return detail::quotient<F>(unpack<F, UInt>(a), unpack<F, UInt>(b));
  });
}

/// The square root; sqrt(-0) is -0, of anything else negative it is invalid.
template <const Format& F>
FP16_HD constexpr Result<F> sqrt(Code<F> a, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  if (is_nan<F>(a)) return propagate_nan<F>(attributes, a);
  if (is_zero<F>(a)) return {.bits = a, .flags = {}};
  if (is_negative<F>(a)) return invalid_operation<F>(attributes);
  if (is_infinite<F>(a)) return infinite_result<F>(false, attributes);
  return detail::rounded<F>(attributes,
                            [&]<typename UInt>() { return detail::square_root<F>(unpack<F, UInt>(a)); });
}

/// a * b + c with one rounding.
template <const Format& F>
FP16_HD constexpr Result<F> fma(Code<F> a, Code<F> b, Code<F> c, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  b = read_operand<F>(b, attributes);
  c = read_operand<F>(c, attributes);
  if (is_nan<F>(a) || is_nan<F>(b) || is_nan<F>(c)) return propagate_nan<F>(attributes, a, b, c);
  if (is_infinite<F>(a) || is_infinite<F>(b)) {
    const Result<F> infinite_product = multiply<F>(a, b);
    if (is_nan<F>(infinite_product.bits)) return invalid_operation<F>(attributes);
    return add<F>(infinite_product.bits, c, attributes);
  }
  if (is_infinite<F>(c)) return infinite_result<F>(is_negative<F>(c), attributes);
  return detail::rounded<F>(attributes, [&]<typename UInt>() {
    return detail::sum(detail::product(unpack<F, UInt>(a), unpack<F, UInt>(b)), unpack<F, UInt>(c),
                       attributes.rounding);
  });
}

}  // namespace fp16
