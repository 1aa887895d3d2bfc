#pragma once
/// Conversions between formats, and between codes and the language's float and double. Each rounds once.

#include <bit>
#include <cstdint>
#include <limits>

#include "config.h"
#include "unpacked.h"

namespace fp16 {

namespace detail {

template <const Format& To, const Format& From>
FP16_HD constexpr Result<To> convert_nan(Bits<From> bits, const Attributes& attributes) {
  if constexpr (!To.has_nan()) {
    return invalid_operation<To>(attributes);
  } else {
    const Flags flags{.invalid = is_signalling_nan<From>(bits)};
    if (attributes.nan_policy != NanPolicy::first_operand)
      return {.bits = default_nan<To>(attributes.nan_policy), .flags = flags};
    Bits<To> payload = 0;
    if constexpr (To.has_nan_payload() && From.has_nan_payload()) {
      constexpr int shift = To.trailing_bits() - From.trailing_bits();
      const std::uint64_t trailing = bits & trailing_mask<From>;
      payload = static_cast<Bits<To>>(shift >= 0 ? trailing << (shift & 63) : trailing >> (-shift & 63));
    }
    const bool negative = From.has_negative_zero() && is_negative<From>(bits);
    return {.bits = with_sign<To>(static_cast<Bits<To>>(quiet_nan_bits<To> | payload), negative),
            .flags = flags};
  }
}

/// `value` rounded to odd (rounding.h) in binary64.
constexpr double to_odd_double(long double value) {
  constexpr double largest = std::numeric_limits<double>::max();
  const bool finite = value - value == 0;
  if (finite && (value < -largest || value > largest)) return value < 0 ? -largest : largest;
  const auto nearest = static_cast<double>(value);
  const auto bits = std::bit_cast<std::uint64_t>(nearest);
  if (!finite || nearest == value || bits % 2 != 0) return nearest;
  const bool too_small = value < 0 ? nearest > value : nearest < value;
  return std::bit_cast<double>(too_small ? bits + 1 : bits - 1);
}

}  // namespace detail

/// The value of `bits` in the format To, rounded once. Infinities and zeros keep their sign. A NaN keeps its
/// sign and the leading bits of its payload and becomes quiet, as in the F16C instructions, or becomes what
/// `nan_policy` says; a signalling one raises invalid. What To does not have: a NaN becomes +0 with invalid,
/// an infinity overflows (`infinite_result`), -0 becomes +0, and for E8M0 negative numbers are invalid and
/// zero underflows to the smallest number. Correctly rounded: float to half for all 2^32 floats against the
/// F16C hardware in its four directions, every binary16 tie with its neighbours in all six against exact
/// rationals. Widening conversions are exact. IEEE 754-2019 clause 5.4.2.
template <const Format& To, const Format& From>
FP16_HD constexpr Result<To> convert(Code<From> bits, const Attributes& attributes = {}) {
  bits = read_operand<From>(bits, attributes);
  const bool negative = is_negative<From>(bits);
  if (is_nan<From>(bits)) return detail::convert_nan<To, From>(bits, attributes);
  if (is_infinite<From>(bits)) {
    if (negative && !To.is_signed()) return invalid_operation<To>(attributes);
    return infinite_result<To>(negative, attributes);
  }
  const Unpacked<std::uint64_t> value = unpack<From, std::uint64_t>(bits);
  if (From.width() > 32 || attributes.rounding != Rounding::stochastic)
    return round_pack<To>(value, attributes);
  // floor(fraction * 2^32) > r is the same as floor(fraction * 2^64) > r * 2^32 + 2^32 - 1.
  Attributes with_32_bits = attributes;
  with_32_bits.random_bits = attributes.random_bits << 32 | 0xffffffff;
  return round_pack<To>(value, with_32_bits);
}

/// The code of F for `value`.
template <const Format& F>
FP16_HD constexpr Result<F> encode(float value, const Attributes& attributes = {}) {
  return convert<F, binary32>(std::bit_cast<std::uint32_t>(value), attributes);
}

/// The code of F for `value`, rounded once from all 53 bits.
template <const Format& F>
FP16_HD constexpr Result<F> encode(double value, const Attributes& attributes = {}) {
  return convert<F, binary64>(std::bit_cast<std::uint64_t>(value), attributes);
}

/// The code of F for `value`, rounded once from all its bits, but in stochastic rounding: that sees the
/// fraction as far as binary64 reaches, with a sticky bit at its end. A signalling NaN is quiet before it is read, and
/// raises nothing.
template <const Format& F>
requires(F.exponent_bits < 11 &&
         F.precision <= 51) constexpr Result<F> encode(long double value, const Attributes& attributes = {}) {
  Attributes of_double = attributes;  // a normal long double may be a subnormal double
  of_double.denormals_are_zero &= (value < 0 ? -value : value) < std::numeric_limits<long double>::min();
  return encode<F>(detail::to_odd_double(value), of_double);
}

/// The exact value of a code.
template <const Format& F>
FP16_HD constexpr double decode(Code<F> bits) {
  return std::bit_cast<double>(convert<binary64, F>(bits).bits);
}

/// Nearest-even.
FP16_HD constexpr std::uint16_t float_to_half_bits(float value) {
  return encode<binary16>(value).bits;
}

/// Nearest-even, rounded once from all 53 bits.
FP16_HD constexpr std::uint16_t double_to_half_bits(double value) {
  return encode<binary16>(value).bits;
}

/// Exact.
FP16_HD constexpr float half_bits_to_float(Code<binary16> bits) {
  return std::bit_cast<float>(convert<binary32, binary16>(bits).bits);
}

}  // namespace fp16
