#pragma once
/// Correctly rounded functions of half: for all inputs, in every direction of IEEE 754-2019, with flags.
///
/// `math::exp(code, attributes)` returns the exact function value rounded once, as the operations of
/// arithmetic.h do; `exp(half)` rounds to nearest-even; `apply(math::exp, in, out)` does so over arrays. The
/// functions of one argument are objects, and `math::unary_functions()` lists them.
///
/// Special cases follow IEEE 754-2019 clause 9.2 and C23 annex F where these know the function. For all:
/// a NaN gives a NaN by `attributes.nan_policy`, with invalid if it is signalling; outside the domain the
/// result is `default_nan` with invalid; at a pole it is an infinity with divide_by_zero. A zero without a
/// sign below is +0 in every direction. Stochastic rounding sees the first 13 bits of the discarded fraction,
/// the last of them sticky, so that its probabilities are right to 2^-13.
///
/// Each function holds a table of its values at the 65,536 halves, rounded to odd in binary32, which has
/// enough precision and range to lose nothing to the rounding that follows (Boldo and Melquiond, "Emulation of
/// FMA and correctly rounded sums", 2008). A table is filled at first use, by double-double arithmetic of our
/// own in a few tens of milliseconds; threads may share all of this. The caller's floating-point
/// environment has no say in it, nor in pow, hypot and atan2, and is left as it was. Needs halflab::fp16_bulk.
///
/// How it is known: every entry of every table, every direction and all flags against MPFR; pow, hypot and
/// atan2 on boundary-weighted pairs likewise. For all 2^32 pairs they are held, rounded to odd, from which all
/// other directions follow, against the host's libm (pow and atan2 in double, whose error is assumed to be
/// below 2^-50; hypot as a sqrt in long double, 2^-61), and against MPFR where these do not decide.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "bulk.h"
#include "half_functions.h"
#include "unpacked.h"

namespace fp16 {

namespace detail {
struct DoubleDouble;
}

namespace math {

inline constexpr std::size_t code_count = 1 << 16;

/// The codes of binary32 numbers, by the code of the half they belong to.
using ToOddTable = std::array<std::uint32_t, code_count>;

/// The codes of halves, by the code of the half they belong to.
using HalfTable = std::array<std::uint16_t, code_count>;

/// A function of one half.
class UnaryFunction {
 public:
  struct Definition {
    std::string_view name;
    detail::DoubleDouble (*kernel)(double);  ///< the value at a finite half
    double at_negative_infinity;
    double at_positive_infinity;
  };

  explicit constexpr UnaryFunction(const Definition& definition) : definition_(definition) {}

  std::string_view name() const { return definition_.name; }

  Result<binary16> operator()(Code<binary16> a, const Attributes& attributes = {}) const;
  template <std::same_as<half> Half>
  Result<binary16> operator()(Half a, const Attributes& attributes) const {
    return (*this)(a.bits(), attributes);
  }

  /// Nearest-even.
  template <std::same_as<half> Half>
  half operator()(Half a) const {
    return half::from_bits(results(Rounding::nearest_even)[a.bits()]);
  }

  /// The values rounded to odd in binary32. A domain error is a NaN, a pole an infinity, as are exact
  /// infinities at infinite arguments. The entries of NaNs are NaNs.
  const ToOddTable& to_odd() const;

  /// What the function returns for each code in one direction, with default attributes otherwise. Stochastic
  /// rounding has no such table: std::invalid_argument.
  const HalfTable& results(Rounding rounding) const;

 private:
  static constexpr std::size_t tabulated_directions = 6;

  Definition definition_;
  mutable std::atomic<const ToOddTable*> to_odd_ = nullptr;
  mutable std::array<std::atomic<const HalfTable*>, tabulated_directions> results_{};
};

/// Every function of one argument below, in that order.
std::span<const UnaryFunction* const> unary_functions();

/// e^x. exp(-inf) = +0, exp(+inf) = +inf.
extern const UnaryFunction exp;
/// 2^x. exp2(-inf) = +0, exp2(+inf) = +inf.
extern const UnaryFunction exp2;
/// 10^x. exp10(-inf) = +0, exp10(+inf) = +inf.
extern const UnaryFunction exp10;
/// e^x - 1. expm1(±0) = ±0, expm1(-inf) = -1, expm1(+inf) = +inf.
extern const UnaryFunction expm1;

/// The natural logarithm. log(±0) = -inf is a pole, log(1) = +0, log(+inf) = +inf; domain x >= 0.
extern const UnaryFunction log;
/// The logarithm to base 2. log2(±0) = -inf is a pole, log2(1) = +0, log2(+inf) = +inf; domain x >= 0.
extern const UnaryFunction log2;
/// The logarithm to base 10. log10(±0) = -inf is a pole, log10(1) = +0, log10(+inf) = +inf; domain x >= 0.
extern const UnaryFunction log10;
/// log(1 + x). log1p(±0) = ±0, log1p(-1) = -inf is a pole, log1p(+inf) = +inf; domain x >= -1.
extern const UnaryFunction log1p;

/// The sine of x radians. sin(±0) = ±0; infinities are outside the domain.
extern const UnaryFunction sin;
/// The cosine of x radians. Infinities are outside the domain.
extern const UnaryFunction cos;
/// The tangent of x radians. tan(±0) = ±0; infinities are outside the domain.
extern const UnaryFunction tan;
/// The arc sine in [-pi/2, pi/2]. asin(±0) = ±0; domain |x| <= 1.
extern const UnaryFunction asin;
/// The arc cosine in [0, pi]. acos(1) = +0; domain |x| <= 1.
extern const UnaryFunction acos;
/// The arc tangent. atan(±0) = ±0, atan(±inf) = ±pi/2, rounded and inexact.
extern const UnaryFunction atan;

/// The hyperbolic sine. sinh(±0) = ±0, sinh(±inf) = ±inf.
extern const UnaryFunction sinh;
/// The hyperbolic cosine. cosh(±inf) = +inf.
extern const UnaryFunction cosh;
/// The hyperbolic tangent. tanh(±0) = ±0, tanh(±inf) = ±1.
extern const UnaryFunction tanh;
/// The inverse of sinh. asinh(±0) = ±0, asinh(±inf) = ±inf.
extern const UnaryFunction asinh;
/// The inverse of cosh for x >= 0. acosh(1) = +0, acosh(+inf) = +inf; domain x >= 1.
extern const UnaryFunction acosh;
/// The inverse of tanh. atanh(±0) = ±0, atanh(±1) = ±inf are poles; domain |x| <= 1.
extern const UnaryFunction atanh;

/// The cube root. cbrt(±0) = ±0, cbrt(±inf) = ±inf.
extern const UnaryFunction cbrt;
/// 1 / sqrt(x). rsqrt(±0) = ±inf are poles, rsqrt(+inf) = +0; domain x >= 0.
extern const UnaryFunction rsqrt;
/// 1 / x. rcp(±0) = ±inf are poles, rcp(±inf) = ±0.
extern const UnaryFunction rcp;

/// The error function 2/sqrt(pi) * (integral of e^(-t^2) from 0 to x). erf(±0) = ±0, erf(±inf) = ±1.
extern const UnaryFunction erf;
/// 1 - erf(x). erfc(-inf) = 2, erfc(+inf) = +0.
extern const UnaryFunction erfc;
/// The gamma function. tgamma(±0) = ±inf are poles, tgamma(+inf) = +inf; negative integers and -inf are
/// outside the domain.
extern const UnaryFunction tgamma;
/// log |gamma(x)|. lgamma(1) = lgamma(2) = +0, lgamma(±inf) = +inf; +inf at 0 and the negative integers,
/// which are poles.
extern const UnaryFunction lgamma;

/// The logistic function 1 / (1 + e^-x). sigmoid(-inf) = +0, sigmoid(+inf) = 1.
extern const UnaryFunction sigmoid;
/// x * (1 + erf(x / sqrt(2))) / 2, x times the normal distribution function. gelu(±0) = ±0, gelu(-inf) = -0,
/// gelu(+inf) = +inf; like its neighbours, large negative numbers underflow to -0.
extern const UnaryFunction gelu;
/// x * sigmoid(x). silu(±0) = ±0, silu(-inf) = -0, silu(+inf) = +inf.
extern const UnaryFunction silu;
/// log(1 + e^x). softplus(-inf) = +0, softplus(+inf) = +inf.
extern const UnaryFunction softplus;

/// x^y (IEEE 754-2019 clause 9.2.1, C's pow). 1 where y = ±0 or x = 1, and for x = -1 and y = ±inf, other
/// operands NaNs or not, though a signalling NaN gives a NaN. x = ±0: a pole for finite y < 0, infinite for
/// y = -inf, zero for y > 0; negative where x is and y is an odd integer. x < 0 is outside the domain unless
/// y is an integer or infinite. Infinities otherwise behave as limits.
Result<binary16> pow(Code<binary16> x, Code<binary16> y, const Attributes& attributes = {});

/// sqrt(x^2 + y^2). +inf if either operand is infinite, even if the other is a quiet NaN; hypot(±0, ±0) = +0.
Result<binary16> hypot(Code<binary16> x, Code<binary16> y, const Attributes& attributes = {});

/// The angle of the point (x, y) in [-pi, pi]; note the order of the arguments. The sign is y's. atan2(±0, x)
/// is ±0 for positive x and +0, ±pi (rounded, inexact) for negative x and -0; infinities behave as limits,
/// with odd multiples of pi/4 where both are infinite. Nothing is invalid or a pole.
Result<binary16> atan2(Code<binary16> y, Code<binary16> x, const Attributes& attributes = {});

/// out[i] = function(in[i], attributes); by lookup in `function.results` where only the direction is asked
/// for, and nothing is counted. Arrays and errors are as in bulk.h: the output may be the input.
void apply(const UnaryFunction& function, std::span<const std::uint16_t> in, std::span<std::uint16_t> out,
           const Attributes& attributes = {}, const ArrayOptions& options = {});

using PairFunction = Result<binary16> (*)(Code<binary16>, Code<binary16>, const Attributes&);

/// out[i] = function(a[i], b[i], attributes), for pow, hypot and atan2; one element at a time.
void apply(PairFunction function, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
           std::span<std::uint16_t> out, const Attributes& attributes = {}, const ArrayOptions& options = {});

}  // namespace math

inline half exp(half x) {
  return math::exp(x);
}
inline half exp2(half x) {
  return math::exp2(x);
}
inline half exp10(half x) {
  return math::exp10(x);
}
inline half expm1(half x) {
  return math::expm1(x);
}
inline half log(half x) {
  return math::log(x);
}
inline half log2(half x) {
  return math::log2(x);
}
inline half log10(half x) {
  return math::log10(x);
}
inline half log1p(half x) {
  return math::log1p(x);
}
inline half sin(half x) {
  return math::sin(x);
}
inline half cos(half x) {
  return math::cos(x);
}
inline half tan(half x) {
  return math::tan(x);
}
inline half asin(half x) {
  return math::asin(x);
}
inline half acos(half x) {
  return math::acos(x);
}
inline half atan(half x) {
  return math::atan(x);
}
inline half sinh(half x) {
  return math::sinh(x);
}
inline half cosh(half x) {
  return math::cosh(x);
}
inline half tanh(half x) {
  return math::tanh(x);
}
inline half asinh(half x) {
  return math::asinh(x);
}
inline half acosh(half x) {
  return math::acosh(x);
}
inline half atanh(half x) {
  return math::atanh(x);
}
inline half cbrt(half x) {
  return math::cbrt(x);
}
inline half rsqrt(half x) {
  return math::rsqrt(x);
}
inline half rcp(half x) {
  return math::rcp(x);
}
inline half erf(half x) {
  return math::erf(x);
}
inline half erfc(half x) {
  return math::erfc(x);
}
inline half tgamma(half x) {
  return math::tgamma(x);
}
inline half lgamma(half x) {
  return math::lgamma(x);
}
inline half sigmoid(half x) {
  return math::sigmoid(x);
}
inline half gelu(half x) {
  return math::gelu(x);
}
inline half silu(half x) {
  return math::silu(x);
}
inline half softplus(half x) {
  return math::softplus(x);
}
inline half pow(half x, half y) {
  return half::from_bits(math::pow(x.bits(), y.bits()).bits);
}
inline half hypot(half x, half y) {
  return half::from_bits(math::hypot(x.bits(), y.bits()).bits);
}
inline half atan2(half y, half x) {
  return half::from_bits(math::atan2(y.bits(), x.bits()).bits);
}

}  // namespace fp16
