#pragma once
/// Internal to elementary.h: what differs between binary32 and binary64, and the small parts that its
/// algorithms are made of.
///
/// The polynomials are minimax in the relative error of the function they serve, found by Remez' exchange
/// algorithm in a wider precision; their coefficients were then rounded to the format. The error beside each
/// is what it adds to the function, relative, after that rounding.

#include <bit>
#include <concepts>
#include <cstdint>

#include "bits.h"
#include "config.h"
#include "formats.h"

namespace fp16 {

template <class T>
concept FloatOrDouble = std::same_as<T, float> || std::same_as<T, double>;

/// constant + x (c1 + x (c2 + ...)), by Horner's rule: rounded at every step, from the last coefficient
/// inwards.
template <FloatOrDouble Real, class... Coefficients>
FP16_HD constexpr Real polynomial(Real x, Real constant, Coefficients... higher) {
  if constexpr (sizeof...(higher) == 0) {
    return constant;
  } else {
    return polynomial(x, higher...) * x + constant;
  }
}

namespace elementary {

/// Numbers, because device code cannot read a Format.
template <const Format& F>
struct FormatConstants {
  using Unsigned = Bits<F>;
  static constexpr int precision = F.precision, trailing_bits = F.trailing_bits();
  static constexpr int bias = F.bias(), exponent_bits = F.exponent_bits;
  static constexpr Unsigned sign = sign_mask<F>, min_normal = min_normal_bits<F>;
  static constexpr Unsigned infinity = infinity_bits<F>, default_nan = default_nan_bits<F>;
};

template <FloatOrDouble Real>
struct Constants;

template <>
struct Constants<float> : FormatConstants<binary32> {
  /// Adding this rounds to an integer, which then stands in the low bits of the sum.
  static constexpr float integer_shift = 0x1.8p23f;
  /// ln 2 in two parts (Cody and Waite): n * ln2_upper is exact for |n| < 2^9 (binary64: 2^11).
  static constexpr float ln2_upper = 0x1.62e4p-1f;
  static constexpr float ln2_lower = 0x1.7f7d1cp-20f;
  static constexpr float log2_e = 0x1.715476p0f;
  static constexpr float sqrt_half = 0x1.6a09e6p-1f;
  static constexpr float sqrt_two = 0x1.6a09e6p0f;
  static constexpr float two_thirds_upper = 0x1.555556p-1f, two_thirds_lower = -0x1.555556p-26f;
  static constexpr float half_sqrt_half = 0x1.6a09e6p-2f;
  /// Beyond these e^x is 0 and inf, e^x - 1 is -1, and tanh is 1.
  static constexpr float exp_lowest = -104.0f, exp_highest = 89.0f, expm1_lowest = -18.0f,
                         tanh_highest = 10.0f;
  /// Beyond this the upper tail of the normal distribution is 0; and where its variable has its zero.
  static constexpr float tail_highest = 14.5f, tail_centre = 2.75f;

  /// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2: 2^-28.0.
  FP16_HD static constexpr float exp_tail(float r) {
    return polynomial(r, 0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558fap-5f, 0x1.123b68p-7f, 0x1.6a21d2p-10f);
  }

  /// (2 artanh(s)/s - 2 - 2 s^2/3) / s^4 of s^2, for 1 + f in [sqrt(1/2), sqrt(2)) and s = f/(2 + f); then
  /// log(1 + f) = 2 artanh(s). 2^-37.7.
  FP16_HD static constexpr float artanh_tail(float s2) {
    return polynomial(s2, 0x1.99999ap-2f, 0x1.2492dcp-2f, 0x1.c693f6p-3f, 0x1.8b1f76p-3f);
  }

  /// log(1 + f) - f + f^2/2 for 1 + f in [sqrt(1/2), sqrt(2)): 2^-27.2.
  FP16_HD static constexpr float log_tail(float f) {
    return f * (f * f) *
           polynomial(f, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a00ap-3f, -0x1.54724cp-3f, 0x1.22da06p-3f,
                      -0x1.0d84f4p-3f, 0x1.055be2p-3f, -0x1.38b808p-4f);
  }

  /// erf(z)/z - 1 of s = z^2, for |z| < 1: 2^-28.7.
  FP16_HD static constexpr float erf_ratio(float s) {
    return polynomial(s, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2cf8p-4f, -0x1.b7f91p-6f, 0x1.5405bep-8f,
                      -0x1.a3f71ep-11f, 0x1.496a12p-14f);
  }

  /// (t + c) Phi(-t) e^(t^2/2) of u = (t - c)/(t + c) with c = tail_centre, for 1.12 <= t <= 14.3: 2^-26.8.
  FP16_HD static constexpr float normal_tail(float u) {
    return polynomial(u, 0x1.701efp-1f, -0x1.e5bd14p-2f, 0x1.756bc4p-3f, -0x1.0f71cap-6f, -0x1.0d71eep-6f,
                      0x1.a750f4p-9f, 0x1.468c1ep-9f, -0x1.812c4ep-12f, -0x1.8e54acp-12f);
  }
};

template <>
struct Constants<double> : FormatConstants<binary64> {
  static constexpr double integer_shift = 0x1.8p52;
  static constexpr double ln2_upper = 0x1.62e42fefa38p-1;
  static constexpr double ln2_lower = 0x1.ef35793c7673p-45;
  static constexpr double log2_e = 0x1.71547652b82fep0;
  static constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1;
  static constexpr double sqrt_two = 0x1.6a09e667f3bcdp0;
  static constexpr double two_thirds_upper = 0x1.5555555555555p-1, two_thirds_lower = 0x1.5555555555555p-55;
  static constexpr double half_sqrt_half = 0x1.6a09e667f3bcdp-2;
  static constexpr double exp_lowest = -746.0, exp_highest = 710.0, expm1_lowest = -40.0, tanh_highest = 20.0;
  static constexpr double tail_highest = 39.0, tail_centre = 3.9375;

  /// 2^-60.3.
  FP16_HD static constexpr double exp_tail(double r) {
    return polynomial(r, 0x1p-1, 0x1.555555555555bp-3, 0x1.5555555555504p-5, 0x1.111111110ec89p-7,
                      0x1.6c16c16c2ffffp-10, 0x1.a01a01b370f32p-13, 0x1.a01a0137734b8p-16,
                      0x1.71ddf03bb17c4p-19, 0x1.27e5b2f747858p-22, 0x1.af6bc12c05c75p-26,
                      0x1.1e3ea6abba703p-29);
  }

  /// 2^-64.4.
  FP16_HD static constexpr double artanh_tail(double s2) {
    return polynomial(s2, 0x1.99999999999aep-2, 0x1.2492492486db9p-2, 0x1.c71c71eb48724p-3,
                      0x1.745d00507ac7dp-3, 0x1.3b1af3ad60759p-3, 0x1.0fda6d6eba4f4p-3, 0x1.0b0e630eeb9a5p-3);
  }

  /// log(1 + f) = f - f^2/2 + s (f^2/2 + R), as in fdlibm: 2^-60.6.
  FP16_HD static constexpr double log_tail(double f) {
    const double s = f / (2.0 + f);
    const double s2 = s * s;
    return s * (0.5 * (f * f) + s2 * (two_thirds_upper + s2 * artanh_tail(s2)));
  }

  /// 2^-56.3.
  FP16_HD static constexpr double erf_ratio(double s) {
    return polynomial(s, 0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b2p-4,
                      -0x1.b82ce3128499dp-6, 0x1.565bcd0db02f4p-8, -0x1.c02db3d8ed4cap-11,
                      0x1.f9a321a121b27p-14, -0x1.f4d1df39875b2p-17, 0x1.b9def1a040879p-20,
                      -0x1.5f1d36d04d768p-23, 0x1.f7a41290e73afp-27, -0x1.386ac16929d4ep-30,
                      0x1.0579ab2caaf4cp-34);
  }

  /// For 1.12 <= t <= 38.7: 2^-55.9.
  FP16_HD static constexpr double normal_tail(double u) {
    return polynomial(u, 0x1.821acfbf528d2p-1, -0x1.34d8ef87d379cp-1, 0x1.83fb4cdadf53ep-2,
                      -0x1.6c3b5dd50c503p-3, 0x1.be15c26e5265bp-5, -0x1.4b709d9eff887p-8,
                      -0x1.f62b5c6ccdbc4p-9, 0x1.7042ade1aaa82p-10, 0x1.fe8d2444399bdp-13,
                      -0x1.c2b6e2a06f71cp-13, -0x1.78346fc2a6d08p-16, 0x1.19819f9647a7ap-15,
                      0x1.314997c71978dp-18, -0x1.70fa4e84a2855p-18, -0x1.70bb4b4cf1c7cp-20,
                      0x1.d356e2c4941b5p-21, 0x1.ba5536910f3d2p-22, -0x1.138ab05eb45adp-23,
                      -0x1.a4082b3140212p-24, 0x1.a1e51cee3e25bp-26, 0x1.a08a58492efabp-28);
  }
};

template <FloatOrDouble Real>
using RealBits = typename Constants<Real>::Unsigned;

template <FloatOrDouble Real>
FP16_HD constexpr RealBits<Real> bits_of(Real value) {
  return std::bit_cast<RealBits<Real>>(value);
}

template <FloatOrDouble Real>
inline constexpr Real default_nan = std::bit_cast<Real>(Constants<Real>::default_nan);
template <FloatOrDouble Real>
inline constexpr Real infinity = std::bit_cast<Real>(Constants<Real>::infinity);

template <FloatOrDouble Real>
FP16_HD constexpr bool is_nan(Real value) {
  return (bits_of(value) & ~Constants<Real>::sign) > Constants<Real>::infinity;
}

template <FloatOrDouble Real>
FP16_HD constexpr Real absolute(Real value) {
  return std::bit_cast<Real>(bits_of(value) & ~Constants<Real>::sign);
}

/// `value` with the sign of `sign`, for value >= 0.
template <FloatOrDouble Real>
FP16_HD constexpr Real with_sign_of(Real value, Real sign) {
  return std::bit_cast<Real>(bits_of(value) | (bits_of(sign) & Constants<Real>::sign));
}

/// `then` where `condition`, else `otherwise`. A mask instead of ?: because compilers turn the latter into a
/// jump around the work behind the value not taken, and then cannot vectorise the caller's loop.
template <FloatOrDouble Real>
FP16_HD constexpr Real select(bool condition, Real then, Real otherwise) {
  const auto mask = RealBits<Real>{0} - static_cast<RealBits<Real>>(condition);
  return std::bit_cast<Real>((bits_of(then) & mask) | (bits_of(otherwise) & ~mask));
}

/// NaN stays NaN.
template <FloatOrDouble Real>
FP16_HD constexpr Real clamp(Real x, Real lowest, Real highest) {
  const Real raised = select(x < lowest, lowest, x);
  return select(raised > highest, highest, raised);
}

/// 2^(biased - bias) for biased in [1, 2 bias].
template <FloatOrDouble Real>
FP16_HD constexpr Real power_of_biased(RealBits<Real> biased) {
  return std::bit_cast<Real>(biased << Constants<Real>::trailing_bits);
}

/// An unevaluated sum.
template <FloatOrDouble Real>
struct TwoParts {
  Real upper, lower;
};

/// a + b exactly (Knuth).
template <FloatOrDouble Real>
FP16_HD constexpr TwoParts<Real> two_sum(Real a, Real b) {
  const Real sum = a + b;
  const Real b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

/// a + b exactly, for |a| >= |b| or a = 0 (Dekker).
template <FloatOrDouble Real>
FP16_HD constexpr TwoParts<Real> fast_two_sum(Real a, Real b) {
  const Real sum = a + b;
  return {sum, b - (sum - a)};
}

/// The leading half of the significand: its square is exact.
template <FloatOrDouble Real>
FP16_HD constexpr Real upper_half(Real x) {
  constexpr int dropped = Constants<Real>::precision - Constants<Real>::precision / 2;
  return std::bit_cast<Real>(bits_of(x) >> dropped << dropped);
}

/// a * b exactly in binary32, to 2^-106 in binary64, unless it overflows or its lower part is subnormal
/// (Dekker).
template <FloatOrDouble Real>
FP16_HD constexpr TwoParts<Real> two_product(Real a, Real b) {
  const Real product = a * b;
  const Real a_upper = upper_half(a), a_lower = a - a_upper;
  const Real b_upper = upper_half(b), b_lower = b - b_upper;
  return {product,
          ((a_upper * b_upper - product) + a_upper * b_lower + a_lower * b_upper) + a_lower * b_lower};
}

template <FloatOrDouble Real>
FP16_HD constexpr TwoParts<Real> product(TwoParts<Real> a, TwoParts<Real> b) {
  const auto leading = two_product(a.upper, b.upper);
  return fast_two_sum(leading.upper, leading.lower + (a.upper * b.lower + a.lower * b.upper));
}

}  // namespace elementary
}  // namespace fp16
