#pragma once
/// The functions of <cmath> that need no approximation, for half; the others are in math.h. All to
/// nearest-even and without flags: the templates that they call have both. Special values are those of C23's
/// functions of the same names.

#include <cmath>

#include "classification.h"
#include "config.h"
#include "exponent.h"
#include "half.h"
#include "min_max.h"
#include "neighbours.h"
#include "remainder.h"
#include "sign.h"

namespace fp16 {

FP16_HD constexpr half fabs(half a) {
  return abs(a);
}
FP16_HD constexpr half copysign(half a, half sign) {
  return half::from_bits(copy_sign<binary16>(a.bits(), sign.bits()));
}
FP16_HD constexpr bool isnormal(half a) {
  return is_normal<binary16>(a.bits());
}
/// FP_NAN, FP_INFINITE, FP_ZERO, FP_SUBNORMAL or FP_NORMAL.
FP16_HD constexpr int fpclassify(half a) {
  if (isnan(a)) return FP_NAN;
  if (isinf(a)) return FP_INFINITE;
  if (is_zero<binary16>(a.bits())) return FP_ZERO;
  return isnormal(a) ? FP_NORMAL : FP_SUBNORMAL;
}

/// Rounded to an integer: towards -infinity, +infinity, zero; ties away from zero; ties to even (three
/// names).
FP16_HD constexpr half floor(half a) {
  return half::from_bits(round_to_integral<binary16>(a.bits(), {Rounding::toward_negative}).bits);
}
FP16_HD constexpr half ceil(half a) {
  return half::from_bits(round_to_integral<binary16>(a.bits(), {Rounding::toward_positive}).bits);
}
FP16_HD constexpr half trunc(half a) {
  return half::from_bits(round_to_integral<binary16>(a.bits(), {Rounding::toward_zero}).bits);
}
FP16_HD constexpr half round(half a) {
  return half::from_bits(round_to_integral<binary16>(a.bits(), {Rounding::nearest_away}).bits);
}
FP16_HD constexpr half roundeven(half a) {
  return half::from_bits(round_to_integral<binary16>(a.bits(), {Rounding::nearest_even}).bits);
}
FP16_HD constexpr half rint(half a) {
  return roundeven(a);
}
FP16_HD constexpr half nearbyint(half a) {
  return roundeven(a);
}

/// The other operand if one is a NaN.
FP16_HD constexpr half fmin(half a, half b) {
  return half::from_bits(minimum_number<binary16>(a.bits(), b.bits()).bits);
}
FP16_HD constexpr half fmax(half a, half b) {
  return half::from_bits(maximum_number<binary16>(a.bits(), b.bits()).bits);
}
/// A NaN if one operand is.
FP16_HD constexpr half fminimum(half a, half b) {
  return half::from_bits(minimum<binary16>(a.bits(), b.bits()).bits);
}
FP16_HD constexpr half fmaximum(half a, half b) {
  return half::from_bits(maximum<binary16>(a.bits(), b.bits()).bits);
}

FP16_HD constexpr half fmod(half a, half b) {
  return half::from_bits(fmod<binary16>(a.bits(), b.bits()).bits);
}
FP16_HD constexpr half remainder(half a, half b) {
  return half::from_bits(remainder<binary16>(a.bits(), b.bits()).bits);
}

FP16_HD constexpr half nextafter(half from, half to) {
  return half::from_bits(next_after<binary16>(from.bits(), to.bits()).bits);
}
FP16_HD constexpr half nextup(half a) {
  return half::from_bits(next_up<binary16>(a.bits()).bits);
}
FP16_HD constexpr half nextdown(half a) {
  return half::from_bits(next_down<binary16>(a.bits()).bits);
}

/// a * 2^exponent
FP16_HD constexpr half scalbn(half a, int exponent) {
  return half::from_bits(scalb<binary16>(a.bits(), exponent).bits);
}
FP16_HD constexpr half ldexp(half a, int exponent) {
  return scalbn(a, exponent);
}
FP16_HD constexpr int ilogb(half a) {
  return ilogb<binary16>(a.bits()).value;
}
FP16_HD constexpr half logb(half a) {
  return half::from_bits(logb<binary16>(a.bits()).bits);
}
/// The fraction in [1/2, 1); `*exponent` becomes the power of two.
FP16_HD constexpr half frexp(half a, int* exponent) {
  const FractionAndExponent<binary16> parts = frexp<binary16>(a.bits());
  *exponent = parts.exponent;
  return half::from_bits(parts.fraction);
}
/// The fraction; `*integral` becomes the rest, both with the sign of `a`.
FP16_HD constexpr half modf(half a, half* integral) {
  const Parts<binary16> parts = modf<binary16>(a.bits());
  *integral = half::from_bits(parts.integral);
  return half::from_bits(parts.fraction);
}

// Defined in math.h. Without these declarations a program that forgets it would call C's functions of a double.
inline half exp(half x);
inline half exp2(half x);
inline half exp10(half x);
inline half expm1(half x);
inline half log(half x);
inline half log2(half x);
inline half log10(half x);
inline half log1p(half x);
inline half sin(half x);
inline half cos(half x);
inline half tan(half x);
inline half asin(half x);
inline half acos(half x);
inline half atan(half x);
inline half sinh(half x);
inline half cosh(half x);
inline half tanh(half x);
inline half asinh(half x);
inline half acosh(half x);
inline half atanh(half x);
inline half cbrt(half x);
inline half erf(half x);
inline half erfc(half x);
inline half tgamma(half x);
inline half lgamma(half x);
inline half pow(half x, half y);
inline half hypot(half x, half y);
inline half atan2(half y, half x);

}  // namespace fp16
