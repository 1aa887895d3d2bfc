#pragma once
/// Codes of a format: the unsigned integers that hold them, their fields and their classes.

#include <cstdint>
#include <type_traits>

#include "fp16/config.h"
#include "fp16/formats.h"

namespace fp16 {

/// The smallest unsigned integer that holds a code of F.
template <const Format& F>
using Bits =
    std::conditional_t<F.width() <= 8, std::uint8_t,
                       std::conditional_t<F.width() <= 16, std::uint16_t,
                                          std::conditional_t<F.width() <= 32, std::uint32_t, std::uint64_t>>>;

template <const Format& F>
inline constexpr Bits<F> sign_mask = static_cast<Bits<F>>(Bits<F>{1} << (F.width() - 1));

template <const Format& F>
inline constexpr Bits<F> trailing_mask = static_cast<Bits<F>>((Bits<F>{1} << F.trailing_bits()) - 1);

template <const Format& F>
inline constexpr Bits<F> infinity_bits = static_cast<Bits<F>>(sign_mask<F> - 1 - trailing_mask<F>);

template <const Format& F>
inline constexpr Bits<F> max_finite_bits = static_cast<Bits<F>>(infinity_bits<F> - 1);

template <const Format& F>
inline constexpr Bits<F> min_normal_bits = static_cast<Bits<F>>(trailing_mask<F> + 1);

template <const Format& F>
inline constexpr Bits<F> min_subnormal_bits = 1;

/// Set in quiet NaNs, clear in signalling ones.
template <const Format& F>
inline constexpr Bits<F> quiet_bit = static_cast<Bits<F>>(Bits<F>{1} << (F.trailing_bits() - 1));

/// What an invalid operation returns: the quiet NaN of x86, negative and without payload (0xFE00 in
/// binary16).
template <const Format& F>
inline constexpr Bits<F> default_nan_bits = static_cast<Bits<F>>(sign_mask<F> | infinity_bits<F> |
                                                                 quiet_bit<F>);

/// The code with its sign bit cleared.
template <const Format& F>
FP16_HD constexpr Bits<F> magnitude(Bits<F> bits) {
  return static_cast<Bits<F>>(bits & ~sign_mask<F>);
}

template <const Format& F>
FP16_HD constexpr Bits<F> with_sign(Bits<F> magnitude, bool negative) {
  return static_cast<Bits<F>>(magnitude | (negative ? sign_mask<F> : 0));
}

template <const Format& F>
FP16_HD constexpr bool is_negative(Bits<F> bits) {
  return (bits & sign_mask<F>) != 0;
}

template <const Format& F>
FP16_HD constexpr bool is_zero(Bits<F> bits) {
  return magnitude<F>(bits) == 0;
}

template <const Format& F>
FP16_HD constexpr bool is_subnormal(Bits<F> bits) {
  return !is_zero<F>(bits) && magnitude<F>(bits) < min_normal_bits<F>;
}

template <const Format& F>
FP16_HD constexpr bool is_finite(Bits<F> bits) {
  return magnitude<F>(bits) < infinity_bits<F>;
}

template <const Format& F>
FP16_HD constexpr bool is_infinite(Bits<F> bits) {
  return magnitude<F>(bits) == infinity_bits<F>;
}

template <const Format& F>
FP16_HD constexpr bool is_nan(Bits<F> bits) {
  return magnitude<F>(bits) > infinity_bits<F>;
}

template <const Format& F>
FP16_HD constexpr bool is_signalling_nan(Bits<F> bits) {
  return is_nan<F>(bits) && (bits & quiet_bit<F>) == 0;
}

}  // namespace fp16
