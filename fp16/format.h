#pragma once
/// A binary floating-point format as data: two numbers describe it, everything else is computed from them.

namespace fp16 {

/// An IEEE 754-2019 binary interchange format (clause 3.3): sign bit, biased exponent, trailing significand;
/// infinities, NaNs and subnormals present. A run-time value, or a template argument by reference to a row of
/// formats.h (`template <const Format& F>`: nvcc 13 loses arguments of class type when it writes host code).
struct Format {
  int exponent_bits;  ///< width of the biased exponent field
  int precision;      ///< p, significand bits with the implicit leading bit counted

  constexpr int width() const { return 1 + exponent_bits + precision - 1; }
  constexpr int size_bytes() const { return width() / 8; }
  constexpr int trailing_bits() const { return precision - 1; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int emax() const { return bias(); }
  constexpr int emin() const { return 1 - bias(); }
  /// Exponent of the smallest subnormal, which is also the spacing of all subnormals: 2^(emin - p + 1).
  constexpr int emin_subnormal() const { return emin() - trailing_bits(); }

  friend constexpr bool operator==(const Format&, const Format&) = default;
};

}  // namespace fp16
