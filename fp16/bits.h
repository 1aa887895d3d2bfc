#pragma once
/// Codes of a format: the unsigned integers that hold them, their fields and their classes. Bits of the
/// integer above the format's width must be zero.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "config.h"
#include "formats.h"

namespace fp16 {

/// The smallest unsigned integer that holds a code of F.
template <const Format& F>
requires(F.is_valid()) using Bits =
    std::conditional_t<F.width() <= 8, std::uint8_t,
                       std::conditional_t<F.width() <= 16, std::uint16_t,
                                          std::conditional_t<F.width() <= 32, std::uint32_t, std::uint64_t>>>;

namespace detail {

/// A type that holds a number and is no integer: floating-point types, half, _Float16.
template <typename Value>
concept NumberButInteger = !std::integral<Value> && std::convertible_to<Value, double>;

}  // namespace detail

/// A parameter that takes a code of F. Were it a plain integer, `add<binary16>(1.5, 2.5)` would compile and
/// take 1 and 2 for codes. The code of a half is its bits().
template <const Format& F>
class Code {
 public:
  FP16_HD constexpr Code(Bits<F> bits) : bits_(bits) {}
  template <detail::NumberButInteger Value>
  Code(Value) = delete;  // takes a code, not a value; encode() makes one

  FP16_HD constexpr operator Bits<F>() const { return bits_; }

 private:
  Bits<F> bits_;
};

/// The sign bit of a code; 0 in a format without a sign.
template <const Format& F>
inline constexpr Bits<F> sign_mask = F.is_signed() ? static_cast<Bits<F>>(Bits<F>{1} << (F.width() - 1)) : 0;

template <const Format& F>
inline constexpr Bits<F> trailing_mask = static_cast<Bits<F>>((Bits<F>{1} << F.trailing_bits()) - 1);

template <const Format& F>
inline constexpr Bits<F> max_finite_bits = static_cast<Bits<F>>(F.max_finite_code());

template <const Format& F>
inline constexpr Bits<F> min_normal_bits = static_cast<Bits<F>>(F.has_zero() ? trailing_mask<F> + 1 : 0);

/// The smallest positive number; in formats without subnormals the smallest normal one.
template <const Format& F>
inline constexpr Bits<F> min_subnormal_bits = F.has_zero() ? 1 : 0;

/// Only for formats with infinities.
template <const Format& F>
requires(F.has_infinity()) inline constexpr Bits<F> infinity_bits = static_cast<Bits<F>>(max_finite_bits<F> +
                                                                                         1);

/// Set in quiet NaNs, clear in signalling ones; 0 in formats whose NaNs are all quiet.
template <const Format& F>
inline constexpr Bits<F> quiet_bit = F.has_nan_payload()
                                         ? static_cast<Bits<F>>(Bits<F>{1} << (F.trailing_bits() - 1))
                                         : 0;

/// The positive quiet NaN without payload (0x7E00 in binary16); formats with a single NaN: that one.
template <const Format& F>
requires(F.has_nan()) inline constexpr Bits<F> quiet_nan_bits =
    F.encoding == Encoding::ieee   ? static_cast<Bits<F>>(max_finite_bits<F> + 1 + quiet_bit<F>)
    : F.encoding == Encoding::fnuz ? sign_mask<F>
                                   : static_cast<Bits<F>>(max_finite_bits<F> + 1);

/// What x86 returns for an invalid operation: the negative quiet NaN without payload (0xFE00 in binary16).
template <const Format& F>
requires(F.has_nan()) inline constexpr Bits<F> default_nan_bits = static_cast<Bits<F>>(quiet_nan_bits<F> |
                                                                                       sign_mask<F>);

/// The code with its sign bit cleared.
template <const Format& F>
FP16_HD constexpr Bits<F> magnitude(Code<F> bits) {
  return static_cast<Bits<F>>(bits & ~sign_mask<F>);
}

/// Zero stays +0 in a format without -0, and everything positive in a format without a sign.
template <const Format& F>
FP16_HD constexpr Bits<F> with_sign(Code<F> magnitude, bool negative) {
  const bool has_negative = F.has_negative_zero() || magnitude != 0;
  return static_cast<Bits<F>>(magnitude | (negative && has_negative ? sign_mask<F> : 0));
}

/// -a (IEEE 754-2019 clause 5.5.1), NaNs included; +0 and the NaN of a format without -0 stay as they are.
template <const Format& F>
FP16_HD constexpr Bits<F> negate(Code<F> bits) {
  const bool has_negative = F.has_negative_zero() || magnitude<F>(bits) != 0;
  return static_cast<Bits<F>>(bits ^ (has_negative ? sign_mask<F> : 0));
}

template <const Format& F>
FP16_HD constexpr bool is_nan(Code<F> bits) {
  if constexpr (F.encoding == Encoding::fnuz) return bits == sign_mask<F>;
  if constexpr (F.encoding == Encoding::ieee) return magnitude<F>(bits) > infinity_bits<F>;
  return magnitude<F>(bits) > max_finite_bits<F>;
}

template <const Format& F>
FP16_HD constexpr bool is_infinite(Code<F> bits) {
  if constexpr (!F.has_infinity()) {
    return false;
  } else {
    return magnitude<F>(bits) == infinity_bits<F>;
  }
}

template <const Format& F>
FP16_HD constexpr bool is_finite(Code<F> bits) {
  if constexpr (F.encoding == Encoding::fnuz) return !is_nan<F>(bits);
  return magnitude<F>(bits) <= max_finite_bits<F>;
}

/// The sign bit is set; true of negative NaNs too.
template <const Format& F>
FP16_HD constexpr bool is_negative(Code<F> bits) {
  return (bits & sign_mask<F>) != 0;
}

template <const Format& F>
FP16_HD constexpr bool is_zero(Code<F> bits) {
  return F.has_zero() && magnitude<F>(bits) == 0 && !is_nan<F>(bits);
}

template <const Format& F>
FP16_HD constexpr bool is_subnormal(Code<F> bits) {
  if constexpr (!F.has_zero()) {
    return false;
  } else {
    return magnitude<F>(bits) != 0 && magnitude<F>(bits) < min_normal_bits<F>;
  }
}

template <const Format& F>
FP16_HD constexpr bool is_signalling_nan(Code<F> bits) {
  return F.has_nan_payload() && is_nan<F>(bits) && (bits & quiet_bit<F>) == 0;
}

}  // namespace fp16
