#pragma once
/// Reading and changing the exponent of a number.

#include <cstdint>
#include <limits>

#include "config.h"
#include "integral.h"
#include "unpacked.h"

namespace fp16 {

/// fraction * 2^exponent
template <const Format& F>
struct FractionAndExponent {
  Bits<F> fraction;
  int exponent;
  Flags flags;

  friend constexpr bool operator==(const FractionAndExponent&, const FractionAndExponent&) = default;
};

/// a * 2^n for any n, rounded once (scaleB, IEEE 754-2019 clause 5.3.3).
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr Result<F> scalb(Code<F> a, int n, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  if (is_nan<F>(a)) return propagate_nan<F>(attributes, a);
  if (is_infinite<F>(a)) return infinite_result<F>(is_negative<F>(a), attributes);
  // From here on any number of any format overflows, or is so small that only its sign and that it is not
  // zero matter.
  constexpr int far = 1 << 13;
  Unpacked<std::uint64_t> value = unpack<F, std::uint64_t>(a);
  value.exponent += n < -far ? -far : n > far ? far : n;
  return round_pack<F>(value, attributes);
}

/// floor(log2(|a|)), exact for subnormal numbers too. Invalid: the smallest int for a zero or a NaN, the
/// largest for an infinity (logB with an integral logBFormat, IEEE 754-2019 clause 5.3.3; C's ilogb).
template <const Format& F>
FP16_HD constexpr IntegerResult<int> ilogb(Code<F> a, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  if (is_infinite<F>(a)) return {.value = std::numeric_limits<int>::max(), .flags = {.invalid = true}};
  if (is_nan<F>(a) || is_zero<F>(a))
    return {.value = std::numeric_limits<int>::min(), .flags = {.invalid = true}};
  const Unpacked<std::uint64_t> value = unpack<F, std::uint64_t>(a);
  return {.value = value.exponent + bit_width(value.significand) - 1, .flags = {}};
}

/// The exponent as a number of the format (logB with a floating-point logBFormat): of an infinity +infinity, of a
/// zero -infinity with divide_by_zero. Exact but in E5M2 and its fnuz kin, whose three digits round the larger exponents.
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD constexpr Result<F> logb(Code<F> a, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  if (is_nan<F>(a)) return propagate_nan<F>(attributes, a);
  if (is_infinite<F>(a)) return infinite_result<F>(false, attributes);
  if (is_zero<F>(a)) return infinite_result<F>(true, attributes, {.divide_by_zero = true});
  return from_integer<F>(ilogb<F>(a).value, attributes);
}

/// The fraction's magnitude lies in [1/2, 1); zeros, infinities (but when saturating) and NaNs are their own
/// fraction, with exponent 0 (C's frexp). Exact where 1/2 is a normal number; in E2M1 and E2M3, where it is
/// subnormal, the fraction is rounded, also to 1.
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr FractionAndExponent<F> frexp(Code<F> a, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  const bool has_exponent = is_finite<F>(a) && !is_zero<F>(a);
  const int exponent = has_exponent ? ilogb<F>(a).value + 1 : 0;
  const Result<F> fraction = scalb<F>(a, -exponent, attributes);
  return {.fraction = fraction.bits, .exponent = exponent, .flags = fraction.flags};
}

}  // namespace fp16
