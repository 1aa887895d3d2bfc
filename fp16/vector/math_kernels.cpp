#include "fp16/vector/math_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "fp16/codec.h"

namespace fp16::detail {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr DoubleDouble ln10{0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53};
constexpr DoubleDouble sqrt_half{0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55};
constexpr DoubleDouble reciprocal_sqrt_pi{0x1.20dd750429b6dp-1, 0x1.1ae3a914fed80p-57};
constexpr DoubleDouble half_ln_2pi{0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55};

template <std::size_t count>
using Coefficients = std::array<DoubleDouble, count>;

/// c[0] + x (c[1] + x (c[2] + ...)). The terms from index `accurate` on must be below 2^-48 of the sum, so
/// that double is enough for them.
template <std::size_t count>
DoubleDouble polynomial(DoubleDouble x, const Coefficients<count>& c, std::size_t accurate) {
  double tail = 0;
  for (std::size_t i = count; i-- > accurate;) tail = tail * x.high + c[i].high;
  DoubleDouble sum = tail;
  for (std::size_t i = accurate; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

/// 1/n! for n = first, first + step, ..., of alternating sign if `alternating`.
template <std::size_t count>
Coefficients<count> inverse_factorials(int first, int step, bool alternating) {
  Coefficients<count> result;
  DoubleDouble inverse = 1;
  int n = 1;
  for (std::size_t i = 0; i < count; ++i) {
    for (; n <= first + static_cast<int>(i) * step; ++n) inverse = inverse / n;
    result[i] = alternating && i % 2 == 1 ? -inverse : inverse;
  }
  return result;
}

/// 1, 1/3, 1/5, ..., of alternating sign if `alternating`.
template <std::size_t count>
Coefficients<count> inverse_odd_numbers(bool alternating) {
  Coefficients<count> result;
  for (std::size_t i = 0; i < count; ++i) {
    const DoubleDouble inverse = DoubleDouble(1) / (2.0 * static_cast<double>(i) + 1);
    result[i] = alternating && i % 2 == 1 ? -inverse : inverse;
  }
  return result;
}

/// e^r - 1 for |r| <= 0.35: the first term left out is below 2^-107 r.
DoubleDouble small_expm1(DoubleDouble r) {
  static const auto coefficients = inverse_factorials<22>(1, 1, false);
  return r * polynomial(r, coefficients, 12);
}

/// e^x - 1 for |x| <= 600.
DoubleDouble exponential_minus_one(DoubleDouble x) {
  return std::abs(x.high) < 0.34 ? small_expm1(x) : exponential(x) - 1;
}

/// log(1 + u) for -0.29 < u < 0.42 by 2 artanh(s), s = u / (2 + u): the first term left out is below
/// 2^-111 u.
DoubleDouble small_log1p(DoubleDouble u) {
  static const auto coefficients = inverse_odd_numbers<21>(false);
  const DoubleDouble s = u / (u + 2);
  return s * polynomial(s * s, coefficients, 10) * 2;
}

/// log(1 + u) for u > -1.
DoubleDouble logarithm_of_one_plus(DoubleDouble u) {
  return u.high > -0.29 && u.high < 0.41 ? small_log1p(u) : logarithm(u + 1);
}

/// The sine of |r| <= 0.8: the first term left out is below 2^-105 r.
DoubleDouble small_sin(DoubleDouble r) {
  static const auto coefficients = inverse_factorials<14>(1, 2, true);
  return r * polynomial(r * r, coefficients, 9);
}

/// The cosine of |r| <= 0.8: the first term left out is below 2^-106.
DoubleDouble small_cos(DoubleDouble r) {
  static const auto coefficients = inverse_factorials<14>(0, 2, true);
  return polynomial(r * r, coefficients, 9);
}

/// x = quadrant pi/2 + rest, |rest| <= pi/4. No half is nearer than 2^-17 to a multiple of pi/2 but 0 (177.5
/// comes nearest), so that the digits that half_pi lacks are 2^-81 of the rest.
struct Reduced {
  unsigned quadrant;
  DoubleDouble rest;
};

Reduced reduce(double x) {
  const double n = nearest_integer(x / half_pi.high);
  const DoubleDouble multiple = exact_product(n, half_pi.high);
  // The first difference is exact: x is next to the multiple.
  const DoubleDouble rest = exact_sum(x - multiple.high, -multiple.low);
  const auto quadrant = static_cast<unsigned>(static_cast<std::int64_t>(n));
  return {quadrant % 4, rest - exact_product(n, half_pi.low)};
}

/// |sin(pi x)| for any half x.
DoubleDouble absolute_sin_pi(double x) {
  const double distance = std::abs(x - nearest_integer(x));
  return distance <= 0.25 ? small_sin(pi * distance) : small_cos(pi * (0.5 - distance));
}

constexpr double erfc_fraction_from = 3;

/// erf(z) for 0 <= z < 3: 2/sqrt(pi) e^(-z^2) (z + 2z^3/3 + 4z^5/15 + ...), all terms of one sign. Term n is
/// at most 18^n / (1 3 5 ... (2n+1)); the last that is there, below 2^-130.
DoubleDouble erf_series(DoubleDouble z) {
  static const auto inverses = inverse_odd_numbers<90>(false);
  const DoubleDouble square = z * z;
  const DoubleDouble doubled_square = square * 2;
  DoubleDouble term = z;
  DoubleDouble sum = z;
  int n = 1;
  for (; term.high > 0x1p-50 * sum.high; ++n) {
    term = term * doubled_square * inverses[n];
    sum = sum + term;
  }
  // Double is enough for the rest.
  double tail = 0;
  for (double small = term.high; small > 0x1p-110 * sum.high; ++n) {
    small *= doubled_square.high * inverses[n].high;
    tail += small;
  }
  sum = sum + tail;
  return exponential(-square) * sum * reciprocal_sqrt_pi * 2;
}

/// erfc(z) for 3 <= z <= 20: e^(-z^2) / sqrt(pi) / (z + (1/2) / (z + (2/2) / (z + (3/2) / ...))), cut after
/// as many terms as leave an error of about e^(-2 z sqrt(2 terms)). Half of the digits are enough for the
/// inner terms, an error in which shrinks on the way out.
DoubleDouble erfc_fraction(DoubleDouble z) {
  const int terms = 14 + static_cast<int>(900 / (z.high * z.high));
  int n = terms;
  double inner = z.high;
  for (; n > 8 + terms / 4; --n) inner = z.high + 0.5 * n / inner;
  DoubleDouble denominator = inner;
  for (; n > 0; --n) denominator = z + DoubleDouble(0.5 * n) / denominator;
  return exponential(-(z * z)) * reciprocal_sqrt_pi / denominator;
}

/// erf(z) for 0 <= z <= 20.
DoubleDouble error_function(DoubleDouble z) {
  return z.high < erfc_fraction_from ? erf_series(z) : DoubleDouble(1) - erfc_fraction(z);
}

/// erfc(z) for |z| <= 20.
DoubleDouble complementary_error_function(DoubleDouble z) {
  if (z.high < 0) return error_function(-z) + 1;
  return z.high < erfc_fraction_from ? DoubleDouble(1) - erf_series(z) : erfc_fraction(z);
}

/// B(2k) / (2k (2k - 1)) for k = 1, 2, ..., B the Bernoulli numbers.
Coefficients<17> stirling_coefficients() {
  constexpr std::array<double, 17> numerators{1,
                                              -1,
                                              1,
                                              -1,
                                              5,
                                              -691,
                                              7,
                                              -3617,
                                              43867,
                                              -174611,
                                              854513,
                                              -236364091,
                                              8553103,
                                              -23749461029,
                                              8615841276005,
                                              -7709321041217,
                                              2577687858367};
  constexpr std::array<double, 17> denominators{6,   30,  42,   30, 66,  2730,  6,   510, 798,
                                                330, 138, 2730, 6,  870, 14322, 510, 6};
  Coefficients<17> result;
  for (int k = 1; k <= 17; ++k) {
    result[k - 1] = DoubleDouble(numerators[k - 1]) / (denominators[k - 1] * (2 * k) * (2 * k - 1));
  }
  return result;
}

/// log(gamma(z)) for z >= 16 by Stirling's series: the first term left out is below 2^-106.
DoubleDouble stirling(double z) {
  static const auto coefficients = stirling_coefficients();
  const DoubleDouble inverse = DoubleDouble(1) / z;
  return (logarithm(z) * (z - 0.5) - z) + half_ln_2pi +
         inverse * polynomial(inverse * inverse, coefficients, 7);
}

/// gamma(x) = gamma(x + steps) / divisor, with x + steps >= 16 and divisor = x (x + 1) ... (x + steps - 1).
struct ShiftedGamma {
  DoubleDouble log_gamma;
  DoubleDouble divisor;
};

ShiftedGamma shift_gamma(double x) {
  DoubleDouble divisor = 1;
  for (; x < 16; ++x) divisor = divisor * x;
  return {stirling(x), divisor};
}

/// For x > 0; the result must be below e^600.
DoubleDouble gamma_of_positive(double x) {
  const ShiftedGamma shifted = shift_gamma(x);
  return exponential(shifted.log_gamma) / shifted.divisor;
}

/// For x > 0, with an absolute error of 2^-95: the zeros at 1 and 2 are no results of rounding.
DoubleDouble log_gamma_of_positive(double x) {
  if (x == 1 || x == 2) return 0;
  const ShiftedGamma shifted = shift_gamma(x);
  return x < 16 ? shifted.log_gamma - logarithm(shifted.divisor) : shifted.log_gamma;
}

bool is_integer(double x) {
  return nearest_integer(x) == x;
}

/// gamma(x) gamma(-x) = -pi / (x sin(pi x)): the absolute value of that.
DoubleDouble reflection(double x) {
  return pi / (absolute_sin_pi(x) * std::abs(x));
}

/// 1 / (1 + e^-x) for |x| <= 600.
DoubleDouble logistic(double x) {
  const DoubleDouble decay = exponential(-std::abs(x));
  return (x < 0 ? decay : DoubleDouble(1)) / (decay + 1);
}

/// Results beyond e^±200 are beyond binary32, also after multiplication by a half.
double within_range(double x) {
  return std::clamp(x, -200.0, 200.0);
}

}  // namespace

std::uint32_t round_to_odd(DoubleDouble value, double threshold) {
  if (std::isnan(value.high)) return default_nan_bits<binary32>;
  const bool negative = std::signbit(value.high);
  const DoubleDouble positive = negative ? -value : value;
  const std::uint32_t nearest = encode<binary32>(positive.high).bits;
  if (std::isinf(value.high)) return with_sign<binary32>(nearest, negative);

  const double distance = (positive.high - decode<binary32>(nearest)) + positive.low;
  const bool exact = std::abs(distance) <= threshold * positive.high;
  const bool odd = nearest % 2 == 1;
  const std::uint32_t code = exact || odd ? nearest : distance > 0 ? nearest + 1 : nearest - 1;
  return with_sign<binary32>(code, negative);
}

DoubleDouble exponential(DoubleDouble x) {
  const double n = nearest_integer(x.high / ln2.high);
  return scale(small_expm1(x - ln2 * n) + 1, static_cast<int>(n));
}

DoubleDouble logarithm(DoubleDouble x) {
  const auto bits = std::bit_cast<std::uint64_t>(x.high);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  if (x.high * power_of_two(-exponent) > 1.4) ++exponent;
  const DoubleDouble reduced = scale(x, -exponent);
  return ln2 * exponent + small_log1p(reduced - 1);
}

DoubleDouble arc_tangent(DoubleDouble x) {
  static const auto coefficients = inverse_odd_numbers<23>(true);
  if (x.high < 0) return -arc_tangent(-x);
  if (x.high > 1) return half_pi - arc_tangent(DoubleDouble(1) / x);
  // Halving the angle twice leaves a tangent below 0.2; the first term left out is below 2^-112 x.
  const auto halved = [](DoubleDouble t) { return t / (sqrt(t * t + 1) + 1); };
  const DoubleDouble t = halved(halved(x));
  return t * polynomial(t * t, coefficients, 11) * 4;
}

namespace kernel {

DoubleDouble exp(double x) {
  return exponential(within_range(x));
}

DoubleDouble exp2(double x) {
  const double clamped = within_range(x);
  const double n = nearest_integer(clamped);
  return scale(exponential(ln2 * (clamped - n)), static_cast<int>(n));
}

DoubleDouble exp10(double x) {
  return exponential(ln10 * std::clamp(x, -80.0, 80.0));
}

DoubleDouble expm1(double x) {
  if (x == 0) return x;
  return exponential_minus_one(std::clamp(x, -36.0, 200.0));
}

DoubleDouble log(double x) {
  if (x == 0) return -infinity;
  return x < 0 ? nan : logarithm(x);
}

DoubleDouble log2(double x) {
  return x > 0 ? logarithm(x) / ln2 : log(x);
}

DoubleDouble log10(double x) {
  return x > 0 ? logarithm(x) / ln10 : log(x);
}

DoubleDouble log1p(double x) {
  if (x == 0) return x;
  if (x == -1) return -infinity;
  return x < -1 ? nan : logarithm_of_one_plus(x);
}

DoubleDouble sin(double x) {
  if (x == 0) return x;
  const auto [quadrant, rest] = reduce(x);
  const DoubleDouble value = quadrant % 2 == 0 ? small_sin(rest) : small_cos(rest);
  return quadrant < 2 ? value : -value;
}

DoubleDouble cos(double x) {
  const auto [quadrant, rest] = reduce(x);
  const DoubleDouble value = quadrant % 2 == 0 ? small_cos(rest) : small_sin(rest);
  return quadrant == 1 || quadrant == 2 ? -value : value;
}

DoubleDouble tan(double x) {
  if (x == 0) return x;
  const auto [quadrant, rest] = reduce(x);
  const DoubleDouble sine = small_sin(rest);
  const DoubleDouble cosine = small_cos(rest);
  return quadrant % 2 == 0 ? sine / cosine : -cosine / sine;
}

DoubleDouble asin(double x) {
  if (x == 0) return x;
  if (std::abs(x) > 1) return nan;
  const DoubleDouble cosine = sqrt(DoubleDouble(1) - exact_product(x, x));
  return arc_tangent(DoubleDouble(x) / (cosine + 1)) * 2;
}

DoubleDouble acos(double x) {
  if (std::abs(x) > 1) return nan;
  if (x < 0) return pi - acos(-x);
  return arc_tangent(sqrt(DoubleDouble(1 - x) / (1 + x))) * 2;
}

DoubleDouble atan(double x) {
  return x == 0 ? x : arc_tangent(x);
}

DoubleDouble sinh(double x) {
  if (x == 0) return x;
  if (x < 0) return -sinh(-x);
  const DoubleDouble growth = exponential_minus_one(within_range(x));
  return (growth + growth / (growth + 1)) * 0.5;
}

DoubleDouble cosh(double x) {
  const DoubleDouble growth = exponential(within_range(x));
  return (growth + DoubleDouble(1) / growth) * 0.5;
}

DoubleDouble tanh(double x) {
  if (x == 0) return x;
  const DoubleDouble growth = exponential_minus_one(std::clamp(2 * x, -40.0, 40.0));
  return growth / (growth + 2);
}

DoubleDouble asinh(double x) {
  if (x == 0) return x;
  if (x < 0) return -asinh(-x);
  const DoubleDouble square = exact_product(x, x);
  return logarithm_of_one_plus(square / (sqrt(square + 1) + 1) + x);
}

DoubleDouble acosh(double x) {
  if (x < 1) return nan;
  const double above_one = x - 1;
  return logarithm_of_one_plus(sqrt(exact_product(above_one, x + 1)) + above_one);
}

DoubleDouble atanh(double x) {
  if (x == 0) return x;
  if (std::abs(x) > 1) return nan;
  if (std::abs(x) == 1) return x * infinity;
  if (x < 0) return -atanh(-x);
  return logarithm_of_one_plus(DoubleDouble(2 * x) / (1 - x)) * 0.5;
}

DoubleDouble cbrt(double x) {
  if (x == 0) return x;
  if (x < 0) return -cbrt(-x);
  return exponential(logarithm(x) / 3);
}

DoubleDouble rsqrt(double x) {
  if (x == 0) return 1 / x;
  return x < 0 ? nan : DoubleDouble(1) / sqrt(x);
}

DoubleDouble rcp(double x) {
  return x == 0 ? DoubleDouble(1 / x) : DoubleDouble(1) / x;
}

DoubleDouble erf(double x) {
  if (x == 0) return x;
  return x < 0 ? -erf(-x) : error_function(std::min(x, 6.0));
}

DoubleDouble erfc(double x) {
  return complementary_error_function(std::clamp(x, -6.0, 14.0));
}

DoubleDouble tgamma(double x) {
  if (x == 0) return 1 / x;
  if (x > 0) return gamma_of_positive(std::min(x, 100.0));
  if (is_integer(x)) return nan;
  const DoubleDouble absolute = x < -100 ? DoubleDouble(0x1p-300) : reflection(x) / gamma_of_positive(-x);
  return is_integer(std::floor(x) / 2) ? absolute : -absolute;
}

DoubleDouble lgamma(double x) {
  if (x > 0) return log_gamma_of_positive(x);
  if (is_integer(x)) return infinity;
  return logarithm(reflection(x)) - log_gamma_of_positive(-x);
}

DoubleDouble sigmoid(double x) {
  return logistic(std::clamp(x, -200.0, 36.0));
}

DoubleDouble gelu(double x) {
  if (x == 0) return x;
  const DoubleDouble probability = complementary_error_function(sqrt_half * -std::clamp(x, -20.0, 8.0)) * 0.5;
  return probability * x;
}

DoubleDouble silu(double x) {
  return x == 0 ? x : sigmoid(x) * x;
}

DoubleDouble softplus(double x) {
  if (x > 0) return logarithm_of_one_plus(exponential(-std::min(x, 30.0))) + x;
  return logarithm_of_one_plus(exponential(within_range(x)));
}

}  // namespace kernel

}  // namespace fp16::detail
