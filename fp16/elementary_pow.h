#pragma once
/// x^y, under the terms of elementary.h.

#include "elementary.h"

namespace fp16 {

namespace elementary {

/// log(x) for finite x > 0, with about eleven bits more than Real has.
///
/// x = 2^n (1 + f), s = f/(2 + f), log(1 + f) = 2 artanh(s) = 2 s + s s^2 (2/3 + s^2 (2/5 + ...)).
template <FloatOrDouble Real>
FP16_HD constexpr TwoParts<Real> log_in_two_parts(Real x) {
  using C = Constants<Real>;
  const auto reduced = reduce_logarithm(x);
  const auto divisor = fast_two_sum(Real{2}, reduced.f);
  const Real quotient = reduced.f / divisor.upper;
  const auto back = two_product(quotient, divisor.upper);
  const Real remainder = ((reduced.f - back.upper) - back.lower) - quotient * divisor.lower;
  const auto s = fast_two_sum(quotient, remainder / divisor.upper);

  const auto s2 = product(s, s);
  auto series = fast_two_sum(C::two_thirds_upper, s2.upper * C::artanh_tail(s2.upper));
  series.lower = series.lower + C::two_thirds_lower;
  const auto higher = product(s, product(s2, series));
  auto sum = fast_two_sum(Real{2} * s.upper, higher.upper);
  const Real lower = sum.lower + (Real{2} * s.lower + higher.lower);

  sum = fast_two_sum(reduced.n * C::ln2_upper, sum.upper);
  return fast_two_sum(sum.upper, sum.lower + (lower + reduced.n * C::ln2_lower));
}

/// Infinities are integers.
template <FloatOrDouble Real>
FP16_HD constexpr bool is_integer(Real magnitude) {
  constexpr Real all_are_integers =
      power_of_biased<Real>(Constants<Real>::bias + Constants<Real>::trailing_bits);
  return magnitude >= all_are_integers || (magnitude + all_are_integers) - all_are_integers == magnitude;
}

/// magnitude^y for finite magnitude > 0.
template <FloatOrDouble Real>
FP16_HD constexpr Real power_of_positive(Real magnitude, Real y) {
  using C = Constants<Real>;
  // Beyond, the power of every number but 1 has left the range; kept within, no product overflows.
  constexpr Real largest = power_of_biased<Real>(C::bias + C::precision + C::exponent_bits);
  const Real exponent = clamp(y, -largest, largest);
  const auto logarithm = log_in_two_parts(magnitude);
  const auto power = two_product(exponent, logarithm.upper);
  const bool in_range = clamp(power.upper, C::exp_lowest, C::exp_highest) == power.upper;
  return exponential(power.upper, select(in_range, power.lower + exponent * logarithm.lower, Real{0}),
                     Real{1});
}

}  // namespace elementary

/// x^y. No error above 0.95 ulp among 6 million stratified pairs of binary32 and 10^6 of binary64, nor in
/// hard cases; a power of two with an integer exponent is exact. The logarithm is carried in two parts.
///
/// Special values as in IEEE 754-2019 clause 9.2.1: x^0 = 1 and 1^y = 1 even of NaNs, (-1)^(+-inf) = 1; a
/// negative x needs an integer y (infinities are even integers), else the result is NaN; of +-0 and +-inf the
/// sign is kept by odd y only.
template <FloatOrDouble Real>
FP16_HD constexpr Real pow(Real x, Real y) {
  const Real magnitude = elementary::absolute(x), height = elementary::absolute(y);
  const bool integer = elementary::is_integer(height);
  const bool odd = integer && !elementary::is_integer(Real{0.5} * height);
  const bool zero_or_infinite = magnitude == Real{0} || magnitude == elementary::infinity<Real>;
  const bool grows = (magnitude == Real{0}) == (y < Real{0});
  const bool one = x == Real{1} || y == Real{0};
  const bool invalid =
      elementary::is_nan(x) || elementary::is_nan(y) || (x < Real{0} && !zero_or_infinite && !integer);

  const Real finite = elementary::power_of_positive(magnitude, y);
  const Real limit = elementary::select(grows, elementary::infinity<Real>, Real{0});
  const Real power = elementary::select(zero_or_infinite, limit, finite);
  const Real with_sign = elementary::with_sign_of(power, elementary::select(odd, x, Real{1}));
  const Real result = elementary::select(invalid, elementary::default_nan<Real>, with_sign);
  return elementary::select(one, Real{1}, result);
}

// Overloads that are no templates, so that pow(x, y) after using namespace fp16 is ambiguous and not C's.
FP16_HD constexpr float pow(float x, float y) {
  return pow<float>(x, y);
}
FP16_HD constexpr double pow(double x, double y) {
  return pow<double>(x, y);
}

}  // namespace fp16
