#pragma once
/// Conversions between formats, and between codes and the language's float and double. Each rounds once.

#include <bit>
#include <cstdint>

#include "fp16/config.h"
#include "fp16/unpacked.h"

namespace fp16 {

/// The value of `bits` in the format To, rounded once. Infinities and zeros keep their sign. A NaN keeps its
/// sign and the leading bits of its payload and becomes quiet, as in the F16C instructions; a signalling one
/// raises invalid. Correctly rounded: float to half for all 2^32 floats against the F16C hardware in its four
/// directions, every binary16 tie with its neighbours in all six against exact rationals. Widening
/// conversions are exact. IEEE 754-2019 clause 5.4.2.
template <const Format& To, const Format& From>
FP16_HD constexpr Result<To> convert(Bits<From> bits, Rounding mode = Rounding::nearest_even) {
  const bool negative = is_negative<From>(bits);
  if (is_nan<From>(bits)) {
    constexpr int shift = To.trailing_bits() - From.trailing_bits();
    const std::uint64_t payload = bits & trailing_mask<From>;
    const auto kept = static_cast<Bits<To>>(shift >= 0 ? payload << (shift & 63) : payload >> (-shift & 63));
    return {.bits = with_sign<To>(static_cast<Bits<To>>(infinity_bits<To> | quiet_bit<To> | kept), negative),
            .flags = {.invalid = is_signalling_nan<From>(bits)}};
  }
  if (is_infinite<From>(bits)) return {.bits = with_sign<To>(infinity_bits<To>, negative), .flags = {}};
  return round_pack<To>(unpack<From, std::uint64_t>(bits), mode);
}

/// The code of F for `value`.
template <const Format& F>
FP16_HD constexpr Result<F> encode(float value, Rounding mode = Rounding::nearest_even) {
  return convert<F, binary32>(std::bit_cast<std::uint32_t>(value), mode);
}

/// The code of F for `value`, rounded once from all 53 bits.
template <const Format& F>
FP16_HD constexpr Result<F> encode(double value, Rounding mode = Rounding::nearest_even) {
  return convert<F, binary64>(std::bit_cast<std::uint64_t>(value), mode);
}

/// The exact value of a code.
template <const Format& F>
FP16_HD constexpr double decode(Bits<F> bits) {
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
FP16_HD constexpr float half_bits_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(convert<binary32, binary16>(bits).bits);
}

}  // namespace fp16
