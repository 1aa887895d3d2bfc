#pragma once
/// Rounding to integers: within a format, from a format to the integers of the language, and from those.
///
/// All roundings are possible; stochastic rounding takes the fraction of one exactly and compares it with all
/// 64 random bits.

#include <concepts>
#include <cstdint>
#include <limits>

#include "config.h"
#include "unpacked.h"

namespace fp16 {

/// Signed and unsigned integers of 8 to 64 bits.
template <typename T>
concept MachineInteger = std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8;

template <MachineInteger Integer>
struct IntegerResult {
  Integer value;
  Flags flags;

  friend constexpr bool operator==(const IntegerResult&, const IntegerResult&) = default;
};

/// A number's integral and fractional parts, both with its sign.
template <const Format& F>
struct Parts {
  Bits<F> integral;
  Bits<F> fraction;
  Flags flags;

  friend constexpr bool operator==(const Parts&, const Parts&) = default;
};

/// `a` rounded to an integer of the same format, inexact if it was none: roundToIntegralExact (IEEE 754-2019
/// clause 5.9). Zeros and results of zero keep the sign of `a`. To odd gives the odd one of the two integers.
/// The 8 that 7.5, the largest number of E2M3, rounds to overflows.
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr Result<F> round_to_integral_exact(Code<F> a, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  if (is_nan<F>(a)) return propagate_nan<F>(attributes, a);
  if (is_infinite<F>(a)) return infinite_result<F>(is_negative<F>(a), attributes);
  const Unpacked<std::uint64_t> value = unpack<F, std::uint64_t>(a);
  if (value.exponent >= 0) return {.bits = a, .flags = {}};
  const RoundedSignificand<std::uint64_t> integer =
      round_significand(value.significand, -value.exponent, value.negative, attributes);
  Result<F> result = round_pack<F>(
      Unpacked<std::uint64_t>{.negative = value.negative, .exponent = 0, .significand = integer.value},
      attributes);
  result.flags.inexact |= integer.inexact;
  return result;
}

/// Rounds to an integral value without inexact, but for overflow: roundToIntegralTiesToEven, ...TiesToAway, ...TowardZero,
/// ...TowardPositive and ...TowardNegative, by `attributes.rounding`.
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr Result<F> round_to_integral(Code<F> a, const Attributes& attributes = {}) {
  Result<F> result = round_to_integral_exact<F>(a, attributes);
  result.flags.inexact = result.flags.overflow;
  return result;
}

/// Both parts are exact, but for a tiny fraction that `flush_to_zero` flushes. Of an infinity the fraction is
/// a zero of its sign; of a NaN both parts are NaNs.
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD constexpr Parts<F> modf(Code<F> a, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  Attributes truncating = attributes;
  truncating.rounding = Rounding::toward_zero;
  const Result<F> integral = round_to_integral<F>(a, truncating);
  if (is_nan<F>(a)) return {.integral = integral.bits, .fraction = integral.bits, .flags = integral.flags};
  Unpacked<std::uint64_t> fraction{.negative = is_negative<F>(a), .exponent = 0, .significand = 0};
  if (is_finite<F>(a)) {
    const Unpacked<std::uint64_t> value = unpack<F, std::uint64_t>(a);
    const bool below_one = value.exponent <= -64;
    const std::uint64_t units = value.exponent >= 0 || below_one ? 0 : value.significand >> -value.exponent;
    fraction.exponent = value.exponent;
    fraction.significand = value.exponent >= 0 ? 0
                           : below_one         ? value.significand
                                               : value.significand - (units << -value.exponent);
  }
  const Result<F> rest = round_pack<F>(fraction, attributes);
  return {.integral = integral.bits, .fraction = rest.bits, .flags = integral.flags | rest.flags};
}

namespace detail {

/// The answer where there is none: what x86 returns, the smallest signed or the largest unsigned integer.
/// When saturating: the nearest integer there is, 0 for a NaN.
template <MachineInteger Integer>
FP16_HD constexpr IntegerResult<Integer> invalid_integer(bool nan, bool negative, bool saturate) {
  constexpr Integer lowest = std::numeric_limits<Integer>::min();
  constexpr Integer highest = std::numeric_limits<Integer>::max();
  const Integer nearest = nan ? Integer{0} : negative ? lowest : highest;
  const Integer indefinite = std::signed_integral<Integer> ? lowest : highest;
  return {.value = saturate ? nearest : indefinite, .flags = {.invalid = true}};
}

}  // namespace detail

/// `a` rounded to an integer, inexact if it was none: convertToIntegerExact... (IEEE 754-2019 clause 5.8). A
/// NaN, an infinity and a number whose rounded value does not fit are invalid and give what x86 returns, the
/// smallest signed or the largest unsigned integer; with `saturate`, invalid too, the nearest integer that
/// there is, and 0 for a NaN (Arm, WebAssembly, CUDA).
template <MachineInteger Integer, const Format& F>
FP16_HD constexpr IntegerResult<Integer> to_integer_exact(Code<F> a, const Attributes& attributes = {}) {
  a = read_operand<F>(a, attributes);
  const bool negative = is_negative<F>(a);
  const auto invalid = [&] {
    return detail::invalid_integer<Integer>(is_nan<F>(a), negative, attributes.saturate);
  };
  if (!is_finite<F>(a)) return invalid();
  const Unpacked<std::uint64_t> value = unpack<F, std::uint64_t>(a);
  if (value.exponent + bit_width(value.significand) > 64) return invalid();
  const RoundedSignificand<std::uint64_t> integer =
      value.exponent >= 0 ? RoundedSignificand<std::uint64_t>{value.significand << value.exponent, false}
                          : round_significand(value.significand, -value.exponent, negative, attributes);
  constexpr auto highest = static_cast<std::uint64_t>(std::numeric_limits<Integer>::max());
  constexpr std::uint64_t lowest = std::signed_integral<Integer> ? highest + 1 : 0;
  if (integer.value > (negative ? lowest : highest)) return invalid();
  return {.value = static_cast<Integer>(negative ? std::uint64_t{0} - integer.value : integer.value),
          .flags = {.inexact = integer.inexact}};
}

/// Converts to an integer without inexact: convertToIntegerTiesToEven and so on, by `attributes.rounding`.
template <MachineInteger Integer, const Format& F>
FP16_HD constexpr IntegerResult<Integer> to_integer(Code<F> a, const Attributes& attributes = {}) {
  IntegerResult<Integer> result = to_integer_exact<Integer, F>(a, attributes);
  result.flags.inexact = false;
  return result;
}

/// The code of F for an integer, rounded once; 0 becomes +0 (IEEE 754-2019 clause 5.4.1, convertFromInt).
template <const Format& F, MachineInteger Integer>
FP16_HD constexpr Result<F> from_integer(Integer value, const Attributes& attributes = {}) {
  const auto wide = static_cast<std::uint64_t>(value);
  const bool negative = std::signed_integral<Integer> && (wide >> 63) != 0;
  return round_pack<F>(
      Unpacked<std::uint64_t>{
          .negative = negative, .exponent = 0, .significand = negative ? std::uint64_t{0} - wide : wide},
      attributes);
}

}  // namespace fp16
