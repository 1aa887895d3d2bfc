#pragma once
/// A binary floating-point format as data: three fields describe it, everything else is computed from them.

#include <bit>
#include <cstdint>

#include "config.h"

namespace fp16 {

/// Which codes of a format are not finite numbers.
enum class Encoding {
  ieee,         ///< IEEE 754-2019 clause 3.4: infinities and NaNs fill the largest biased exponent
  finite_nan,   ///< no infinities; the code of all ones is a NaN, with either sign (OCP E4M3)
  fnuz,         ///< no infinities, no -0: its code is the only NaN; the bias is larger by one
  finite,       ///< every code is a finite number (OCP FP6 and FP4)
  power_of_two  ///< unsigned powers of two; no zero, no infinity, all ones is the only NaN (OCP E8M0)
};

namespace detail {

/// `exponent` must be within the range of double, subnormals included.
FP16_HD constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(exponent >= -1022 ? static_cast<std::uint64_t>(exponent + 1023) << 52
                                                 : std::uint64_t{1} << (exponent + 1074));
}

/// floor(digits * log10(2)), for |digits| <= 10,000.
FP16_HD constexpr int whole_decimal_digits(int digits) {
  const int scaled = digits * 30103;
  return scaled / 100000 - (scaled % 100000 < 0);
}

}  // namespace detail

/// A sign bit (but for power_of_two), a biased exponent and a trailing significand, from the highest bit
/// down. A run-time value, or a template argument by reference to a row of formats.h
/// (`template <const Format& F>`: nvcc 13 loses arguments of class type when it writes host code).
struct Format {
  int exponent_bits;  ///< width of the biased exponent field
  int precision;      ///< p, significand bits with the implicit leading bit counted
  Encoding encoding = Encoding::ieee;

  /// Whether such a format can exist and everything here can be computed for it.
  constexpr bool is_valid() const {
    if (exponent_bits < 1 || exponent_bits > 11 || precision < 1 || precision > 53) return false;
    if (emax() > 1023 || emin_subnormal() < -1074) return false;  // the limits are doubles
    switch (encoding) {
      case Encoding::ieee:
        return exponent_bits >= 2 && precision >= 3;  // a quiet NaN, a signalling NaN and an infinity
      case Encoding::finite_nan:
      case Encoding::fnuz:
        return exponent_bits >= 2 && precision >= 2;
      case Encoding::finite:
        return precision >= 2;
      case Encoding::power_of_two:
        return exponent_bits >= 2 && precision == 1;
    }
    return false;
  }

  constexpr bool is_signed() const { return encoding != Encoding::power_of_two; }
  constexpr bool has_zero() const { return encoding != Encoding::power_of_two; }
  constexpr bool has_negative_zero() const { return has_zero() && encoding != Encoding::fnuz; }
  constexpr bool has_infinity() const { return encoding == Encoding::ieee; }
  constexpr bool has_nan() const { return encoding != Encoding::finite; }
  /// Whether NaNs carry a payload and are quiet or signalling.
  constexpr bool has_nan_payload() const { return encoding == Encoding::ieee; }
  /// Formats of scales only convert and compare.
  constexpr bool has_arithmetic() const { return encoding != Encoding::power_of_two; }

  /// Bits of a code.
  constexpr int width() const { return is_signed() + exponent_bits + trailing_bits(); }
  /// Bytes of the smallest integer that holds a code.
  constexpr int size_bytes() const { return width() <= 8 ? 1 : width() <= 16 ? 2 : width() <= 32 ? 4 : 8; }
  constexpr int trailing_bits() const { return precision - 1; }

  /// The code of the largest finite number.
  constexpr std::uint64_t max_finite_code() const {
    const std::uint64_t all_ones = (std::uint64_t{1} << (exponent_bits + trailing_bits())) - 1;
    if (encoding == Encoding::ieee) return all_ones - (std::uint64_t{1} << trailing_bits());
    return encoding == Encoding::finite_nan || encoding == Encoding::power_of_two ? all_ones - 1 : all_ones;
  }

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - (encoding != Encoding::fnuz); }
  constexpr int emax() const { return static_cast<int>(max_finite_code() >> trailing_bits()) - bias(); }
  constexpr int emin() const { return has_zero() - bias(); }
  /// Exponent of the smallest subnormal, which is also the spacing of all subnormals: 2^(emin - p + 1).
  constexpr int emin_subnormal() const { return emin() - trailing_bits(); }

  /// The largest finite number.
  constexpr double max() const {
    const std::uint64_t fraction_mask = (std::uint64_t{1} << trailing_bits()) - 1;
    const std::uint64_t significand = (max_finite_code() & fraction_mask) + fraction_mask + 1;
    return static_cast<double>(significand) * detail::power_of_two(emax() - trailing_bits());
  }
  /// The smallest positive normal number.
  constexpr double min_normal() const { return detail::power_of_two(emin()); }
  /// The smallest positive number; equal to `min_normal` in formats without subnormals.
  constexpr double min_subnormal() const { return detail::power_of_two(emin_subnormal()); }
  /// Distance from 1 to the next larger number, 2^(1-p).
  constexpr double epsilon() const { return detail::power_of_two(-trailing_bits()); }
  /// Largest relative error of rounding a normal number to nearest, 2^-p.
  constexpr double unit_roundoff() const { return detail::power_of_two(-precision); }
  /// Decimal digits that survive the way into the format and back; 0 where not even one does.
  constexpr int digits10() const {
    return trailing_bits() == 0 ? 0 : detail::whole_decimal_digits(trailing_bits());
  }
  /// Decimal digits that tell any two numbers apart: ceil(1 + p * log10(2)).
  constexpr int max_digits10() const { return detail::whole_decimal_digits(precision) + 2; }
  /// How many finite numbers there are, -0 and +0 being one.
  constexpr std::uint64_t finite_values() const {
    return is_signed() ? 2 * max_finite_code() + 1 : max_finite_code() + 1;
  }

  friend constexpr bool operator==(const Format&, const Format&) = default;
};

/// Whether every number of the second format is one of the first.
constexpr bool contains(const Format& wide, const Format& narrow) {
  return wide.precision >= narrow.precision && wide.emax() >= narrow.emax() &&
         wide.emin_subnormal() <= narrow.emin_subnormal();
}

}  // namespace fp16
