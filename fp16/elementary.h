#pragma once
/// Elementary functions of binary32 and binary64: one source for scalar, auto-vectorised and device code.
/// elementary_pow.h has x^y.
///
/// Every function is a fixed sequence of IEEE 754 + - * / and integer operations of its argument's format,
/// free of branches, tables, fused multiply-adds and libm, so its bits are the same on every machine and at
/// every optimisation level. That holds under round-to-nearest, with subnormals kept and without contraction
/// (-ffp-contract=off, nvcc -fmad=false). A NaN result is always default_nan_bits of the format. Zeros have
/// the sign that C's Annex F gives them. All are constant expressions, unless an infinity arises
/// on the way.
///
/// Called unqualified after `using namespace fp16`, a function that C has, too, is ambiguous: fp16::exp(x) says which.
///
/// Errors are in ulp of the exact result (of the smallest subnormal where that is subnormal). In binary32
/// each stated maximum was found by comparing all 2^32 inputs with binary64 arithmetic; in binary64 it bounds
/// the largest error among 10^6 stratified inputs, compared with MPFR.
///
/// Reduction of arguments: Cody and Waite, "Software Manual for the Elementary Functions", 1980. Sums and
/// products in two parts: Dekker, "A floating-point technique for extending the available precision", 1971.

#include "elementary_constants.h"

namespace fp16 {

namespace elementary {

/// e^x = 2^(biased - 2 bias) (1 + (upper + tail)), upper exact.
template <FloatOrDouble Real>
struct ReducedExponential {
  RealBits<Real> biased;
  Real upper, tail;
};

/// The exponential of x + correction, for x between exp_lowest and exp_highest.
///
/// x = n ln 2 + r with |r| <= ln(2)/2, and e^r = 1 + r + r^2 q(r). Keeping r's upper part apart from its
/// lower saves a rounding in the sum.
template <FloatOrDouble Real>
FP16_HD constexpr ReducedExponential<Real> reduce_exponential(Real x, Real correction) {
  using C = Constants<Real>;
  const Real shifted = x * C::log2_e + C::integer_shift;
  const Real n = shifted - C::integer_shift;
  const Real upper = x - n * C::ln2_upper;
  const Real lower = n * C::ln2_lower - correction;
  const Real r = upper - lower;
  constexpr auto two_biases = static_cast<RealBits<Real>>(2 * C::bias);
  return {.biased = bits_of(shifted) - bits_of(C::integer_shift) + two_biases,
          .upper = upper,
          .tail = r * r * C::exp_tail(r) - lower};
}

/// factor * e^(x + correction), for |correction| of at most x's last place and factor in [2^-7, 1].
template <FloatOrDouble Real>
FP16_HD constexpr Real exponential(Real x, Real correction, Real factor) {
  using C = Constants<Real>;
  const auto reduced = reduce_exponential(clamp(x, C::exp_lowest, C::exp_highest), correction);
  const Real e_to_r = Real{1} + (reduced.upper + reduced.tail);
  // Two powers: the product with the first is exact, that with the second rounds once into the subnormals or
  // overflows.
  const RealBits<Real> first = reduced.biased >> 1;
  return factor * e_to_r * power_of_biased<Real>(first) * power_of_biased<Real>(reduced.biased - first);
}

/// (e^x - 1)/2, as the sum of two parts of which the lower is below the upper's last place.
template <FloatOrDouble Real>
FP16_HD constexpr TwoParts<Real> half_expm1(Real x) {
  using C = Constants<Real>;
  const auto reduced = reduce_exponential(clamp(x, C::expm1_lowest, C::exp_highest), Real{0});
  const Real half_power = power_of_biased<Real>(reduced.biased - static_cast<RealBits<Real>>(C::bias + 1));
  const auto constant = two_sum(half_power, Real{-0.5});
  const auto sum = fast_two_sum(constant.upper, half_power * reduced.upper);
  return fast_two_sum(sum.upper, sum.lower + (constant.lower + half_power * reduced.tail));
}

/// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
template <FloatOrDouble Real>
struct ReducedLogarithm {
  Real n, f;
};

/// For finite x > 0.
template <FloatOrDouble Real>
FP16_HD constexpr ReducedLogarithm<Real> reduce_logarithm(Real x) {
  using C = Constants<Real>;
  constexpr int trailing_bits = C::trailing_bits;
  constexpr Real scale = power_of_biased<Real>(C::bias + trailing_bits);
  const bool subnormal = bits_of(x) < C::min_normal;
  const RealBits<Real> bits = bits_of(x * select(subnormal, scale, Real{1}));

  constexpr RealBits<Real> one = bits_of(Real{1});
  const RealBits<Real> biased = (bits - bits_of(C::sqrt_half) + one) >> trailing_bits;
  const Real shifted = std::bit_cast<Real>(bits_of(C::integer_shift) + biased - (one >> trailing_bits));
  const Real exponent = shifted - C::integer_shift;
  return {.n = exponent - select(subnormal, static_cast<Real>(trailing_bits), Real{0}),
          .f = std::bit_cast<Real>(bits - (biased << trailing_bits) + one) - Real{1}};
}

/// n ln 2 + log(1 + f) + correction.
template <FloatOrDouble Real>
FP16_HD constexpr Real logarithm(Real n, Real f, Real correction) {
  using C = Constants<Real>;
  const Real small = (C::log_tail(f) + n * C::ln2_lower) - (Real{0.5} * (f * f) - correction);
  return n * C::ln2_upper + (f + small);
}

/// The logarithm's special values, where `argument` is what it is taken of.
template <FloatOrDouble Real>
FP16_HD constexpr Real with_special_logarithms(Real argument, Real result) {
  // Read as integers, NaNs and everything negative lie above +inf.
  const Real invalid = select(bits_of(argument) > Constants<Real>::infinity, default_nan<Real>, result);
  const Real infinite = select(argument == infinity<Real>, argument, invalid);
  return select(argument == Real{0}, -infinity<Real>, infinite);
}

/// Phi(-t) for t >= 1.12, to t^2/2 = half_square.upper + half_square.lower.
template <FloatOrDouble Real>
FP16_HD constexpr Real normal_tail(Real t, TwoParts<Real> half_square) {
  using C = Constants<Real>;
  const Real sum = t + C::tail_centre;
  const Real ratio = C::normal_tail((t - C::tail_centre) / sum) / sum;
  return exponential(-half_square.upper, -half_square.lower, ratio);
}

}  // namespace elementary

/// e^x. Maximum error 0.90 ulp (binary64: 0.90). exp(-inf) = 0, exp(+inf) = inf. In binary32 inf above
/// 88.72283, subnormal below -87.33654, 0 below -103.97207; in binary64 709.78271, -708.39641, -745.13321.
template <FloatOrDouble Real>
FP16_HD constexpr Real exp(Real x) {
  const Real result = elementary::exponential(x, Real{0}, Real{1});
  return elementary::select(elementary::is_nan(x), elementary::default_nan<Real>, result);
}

/// e^x - 1, without cancellation. Maximum error 1.17 ulp (binary64: 1.20). expm1(-inf) = -1,
/// expm1(+inf) = inf; overflows where exp does.
template <FloatOrDouble Real>
FP16_HD constexpr Real expm1(Real x) {
  const auto half = elementary::half_expm1(x);
  const Real result_or_x =
      elementary::select(elementary::absolute(x) < Real{0x1p-64}, x, Real{2} * (half.upper + half.lower));
  return elementary::select(elementary::is_nan(x), elementary::default_nan<Real>, result_or_x);
}

/// Natural logarithm. Maximum error 0.87 ulp (binary64: 0.90). log(+-0) = -inf, log(+inf) = inf; NaN for
/// x < 0.
template <FloatOrDouble Real>
FP16_HD constexpr Real log(Real x) {
  const auto reduced = elementary::reduce_logarithm(x);
  return elementary::with_special_logarithms(x, elementary::logarithm(reduced.n, reduced.f, Real{0}));
}

/// log(1 + x), without cancellation. Maximum error 0.94 ulp (binary64: 0.95). log1p(-1) = -inf,
/// log1p(+inf) = inf; NaN for x < -1.
template <FloatOrDouble Real>
FP16_HD constexpr Real log1p(Real x) {
  const auto sum = elementary::two_sum(Real{1}, x);
  const auto reduced = elementary::reduce_logarithm(sum.upper);
  // With n = 0 the argument itself is the fraction, and nothing is lost in the sum.
  const bool fraction = reduced.n == Real{0};
  const Real f = elementary::select(fraction, x, reduced.f);
  const Real correction = elementary::select(fraction, Real{0}, sum.lower / sum.upper);
  const Real result =
      elementary::with_special_logarithms(sum.upper, elementary::logarithm(reduced.n, f, correction));
  return elementary::select(elementary::absolute(x) < Real{0x1p-64}, x, result);
}

/// 1 / (1 + e^-x). Maximum error 2.41 ulp (binary64: 2.45). sigmoid(-inf) = 0, sigmoid(+inf) = 1; to the
/// left it fades out as e^x does, through the subnormals.
template <FloatOrDouble Real>
FP16_HD constexpr Real sigmoid(Real x) {
  const Real decay = exp(-elementary::absolute(x));
  const Real numerator = elementary::select(x < Real{0}, decay, Real{1});
  return elementary::select(elementary::is_nan(x), elementary::default_nan<Real>,
                            numerator / (Real{1} + decay));
}

/// log(1 + e^x). Maximum error 1.62 ulp (binary64: 1.90). softplus(-inf) = 0, softplus(+inf) = inf; to the
/// left it fades out as e^x does.
template <FloatOrDouble Real>
FP16_HD constexpr Real softplus(Real x) {
  const Real result = elementary::select(x > Real{0}, x, Real{0}) + log1p(exp(-elementary::absolute(x)));
  return elementary::select(elementary::is_nan(x), elementary::default_nan<Real>, result);
}

/// Hyperbolic tangent. Maximum error 1.40 ulp (binary64: 1.40). tanh(+-inf) = +-1; never beyond 1.
///
/// E/(E + 1) with E = (e^(2|x|) - 1)/2.
template <FloatOrDouble Real>
FP16_HD constexpr Real tanh(Real x) {
  const Real magnitude =
      elementary::clamp(elementary::absolute(x), Real{0}, elementary::Constants<Real>::tanh_highest);
  const auto numerator = elementary::half_expm1(Real{2} * magnitude);
  const auto denominator = elementary::two_sum(numerator.upper, Real{1});
  const Real quotient = numerator.upper / denominator.upper;
  // What the parts left out add; 1/denominator = 1 - quotient.
  const Real excess = denominator.lower + numerator.lower;
  const Real result = quotient + (numerator.lower - quotient * excess) * (Real{1} - quotient);
  const Real odd = elementary::select(magnitude < Real{0x1p-64}, x, elementary::with_sign_of(result, x));
  return elementary::select(elementary::is_nan(x), elementary::default_nan<Real>, odd);
}

/// The error function. Maximum error 1.33 ulp (binary64: 1.40). erf(+-inf) = +-1; never beyond 1.
///
/// |x| < 1: x + x p(x^2). Beyond: 1 - 2 Phi(-sqrt(2) |x|).
template <FloatOrDouble Real>
FP16_HD constexpr Real erf(Real x) {
  using C = elementary::Constants<Real>;
  const Real z = elementary::clamp(elementary::absolute(x), Real{0}, Real{7});
  const Real square = z * z;
  const Real near = z + z * C::erf_ratio(square);
  const Real far = Real{1} - Real{2} * elementary::normal_tail(z * C::sqrt_two, {square, Real{0}});
  const Real result = elementary::with_sign_of(elementary::select(z < Real{1}, near, far), x);
  return elementary::select(elementary::is_nan(x), elementary::default_nan<Real>, result);
}

/// The distribution function of the standard normal distribution, Phi(x) = (1 + erf(x / sqrt(2))) / 2, as in
/// gelu(x) = x Phi(x). Maximum error 3.86 ulp (binary64: 4.00), also of the small values to the left:
/// subnormal below -12.94995, 0 below -14.17019 (binary64: -37.51938, -38.48541). normal_cdf(-inf) = 0,
/// normal_cdf(+inf) = 1.
///
/// |x| < 1.125: 1/2 + x p(x^2). Beyond: Phi(-t) = e^(-t^2/2) R(t), with t^2 in two parts.
template <FloatOrDouble Real>
FP16_HD constexpr Real normal_cdf(Real x) {
  using C = elementary::Constants<Real>;
  const Real t = elementary::clamp(elementary::absolute(x), Real{0}, C::tail_highest);
  const Real leading = elementary::upper_half(t);
  const auto half_square =
      elementary::fast_two_sum(Real{0.5} * leading * leading, Real{0.5} * (t - leading) * (t + leading));
  const Real tail = elementary::normal_tail(t, half_square);
  const Real far = elementary::select(x > Real{0}, Real{1} - tail, tail);
  const Real slope = x * C::half_sqrt_half;
  const Real near = Real{0.5} + (slope + slope * C::erf_ratio(Real{0.5} * (t * t)));
  const Real result = elementary::select(t < Real{1.125}, near, far);
  return elementary::select(elementary::is_nan(x), elementary::default_nan<Real>, result);
}

// Overloads that are no templates: of a template and C's function, the compiler would take C's, unseen.
FP16_HD constexpr float exp(float x) {
  return exp<float>(x);
}
FP16_HD constexpr double exp(double x) {
  return exp<double>(x);
}
FP16_HD constexpr float expm1(float x) {
  return expm1<float>(x);
}
FP16_HD constexpr double expm1(double x) {
  return expm1<double>(x);
}
FP16_HD constexpr float log(float x) {
  return log<float>(x);
}
FP16_HD constexpr double log(double x) {
  return log<double>(x);
}
FP16_HD constexpr float log1p(float x) {
  return log1p<float>(x);
}
FP16_HD constexpr double log1p(double x) {
  return log1p<double>(x);
}
FP16_HD constexpr float tanh(float x) {
  return tanh<float>(x);
}
FP16_HD constexpr double tanh(double x) {
  return tanh<double>(x);
}
FP16_HD constexpr float erf(float x) {
  return erf<float>(x);
}
FP16_HD constexpr double erf(double x) {
  return erf<double>(x);
}

}  // namespace fp16
