#include "tests/oracle/mpfr_half.h"

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <stdexcept>

#include "tests/oracle/mpfr_number.h"

namespace oracle {
namespace {

using mpfr::Number;

/// Three more than binary32 has, so that a bit behind them is right for rounding there, too.
constexpr mpfr_prec_t truncated_precision = 27;
constexpr mpfr_prec_t composition_precision = 160;

double value_of(std::uint16_t half) {
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  const int exponent = (half >> 10) & 31;
  const int trailing = half & 1023;
  if (exponent == 31) return sign * (trailing == 0 ? INFINITY : NAN);
  return sign * (exponent == 0 ? std::ldexp(trailing, -24) : std::ldexp(1024 + trailing, exponent - 25));
}

/// MPFR's functions write the result rounded as asked, and return whether that was inexact.
using Function = int (*)(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding);
using BinaryFunction = int (*)(mpfr_ptr result, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t rounding);

/// The defaults lose erfc(65504).
void prepare() {
  mpfr_set_emin(mpfr_get_emin_min());
  mpfr_set_emax(mpfr_get_emax_max());
  mpfr_clear_flags();
}

/// A result truncated to 27 digits; the last bit of the double is set if that was inexact. Beyond 2^±200,
/// some number there.
struct Truncated {
  double sticky;
  bool pole;
};

Truncated truncate(mpfr_ptr result, bool inexact) {
  const bool pole = mpfr_divby0_p() != 0;
  if (mpfr_regular_p(result) == 0) return {mpfr_get_d(result, MPFR_RNDZ), pole};
  mpfr_set_exp(result, std::clamp<mpfr_exp_t>(mpfr_get_exp(result), -200, 200));
  const double truncated = mpfr_get_d(result, MPFR_RNDZ);
  return {std::bit_cast<double>(std::bit_cast<std::uint64_t>(truncated) | std::uint64_t{inexact}), false};
}

Truncated evaluate(Function function, std::uint16_t a) {
  thread_local Number x(11), result(truncated_precision);
  prepare();
  mpfr_set_d(x, value_of(a), MPFR_RNDN);
  const bool inexact = function(result, x, MPFR_RNDZ) != 0;
  return truncate(result, inexact);
}

Truncated evaluate(BinaryFunction function, std::uint16_t a, std::uint16_t b) {
  thread_local Number x(11), y(11), result(truncated_precision);
  prepare();
  mpfr_set_d(x, value_of(a), MPFR_RNDN);
  mpfr_set_d(y, value_of(b), MPFR_RNDN);
  const bool inexact = function(result, x, y, MPFR_RNDZ) != 0;
  return truncate(result, inexact);
}

std::uint32_t binary32_to_odd(double sticky) {
  const std::uint32_t sign = std::signbit(sticky) ? 0x80000000 : 0;
  if (std::isnan(sticky)) return 0xffc00000;
  if (std::isinf(sticky)) return sign | 0x7f800000;
  const double magnitude = std::abs(sticky);
  if (magnitude >= 0x1p128) return sign | 0x7f7fffff;
  const int ulp_exponent = std::max(magnitude == 0 ? -149 : std::ilogb(magnitude) - 23, -149);
  const double ulps = std::ldexp(magnitude, -ulp_exponent);
  const double kept = std::floor(ulps);
  const auto truncated = static_cast<float>(std::ldexp(kept, ulp_exponent));
  return sign | std::bit_cast<std::uint32_t>(truncated) | (ulps != kept ? 1 : 0);
}

Rounded round(const Truncated& value) {
  Rounded rounded{.half = {}, .binary32_to_odd = binary32_to_odd(value.sticky)};
  if (std::isnan(value.sticky)) {
    rounded.half.fill({.bits = 0xfe00, .invalid = true});
  } else if (std::isinf(value.sticky)) {
    const std::uint16_t bits = value.sticky < 0 ? 0xfc00 : 0x7c00;
    rounded.half.fill({.bits = bits, .divide_by_zero = value.pole});
  } else {
    rounded.half = from_binary64(std::bit_cast<std::uint64_t>(value.sticky));
  }
  return rounded;
}

/// Rounds a composition whose relative error is below 2^-100 and which is certainly no number of
/// `truncated_precision` digits.
int round_composition(mpfr_ptr result, mpfr_ptr composition) {
  if (mpfr_can_round(composition, 100, MPFR_RNDN, MPFR_RNDZ, mpfr_get_prec(result)) == 0)
    throw std::logic_error("a composition of MPFR's functions needs more digits");
  mpfr_set(result, composition, MPFR_RNDZ);
  return 1;
}

int rcp(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
  return mpfr_ui_div(result, 1, x, rounding);
}

/// MPFR gives +inf at -0, where IEEE 754-2019 clause 9.2.1 asks for -inf.
int rsqrt(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
  return mpfr_zero_p(x) != 0 ? rcp(result, x, rounding) : mpfr_rec_sqrt(result, x, rounding);
}

int lgamma(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
  int sign;
  return mpfr_lgamma(result, &sign, x, rounding);
}

/// min(x, bound). All that is cut off here rises towards something it never reaches, and is nearer to it than
/// 2^-60 from the bound on.
void clamp_above(mpfr_ptr clamped, mpfr_srcptr x, int bound) {
  if (mpfr_cmp_si(x, bound) > 0) {
    mpfr_set_si(clamped, bound, MPFR_RNDN);
  } else {
    mpfr_set(clamped, x, MPFR_RNDN);
  }
}

/// 1 / (1 + e^-x) for finite x.
void logistic(mpfr_ptr result, mpfr_srcptr x) {
  clamp_above(result, x, 60);
  mpfr_neg(result, result, MPFR_RNDN);
  mpfr_exp(result, result, MPFR_RNDN);
  mpfr_add_ui(result, result, 1, MPFR_RNDN);
  mpfr_ui_div(result, 1, result, MPFR_RNDN);
}

int sigmoid(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t) {
  if (mpfr_inf_p(x) != 0) return mpfr_set_si(result, mpfr_sgn(x) < 0 ? 0 : 1, MPFR_RNDN);
  if (mpfr_zero_p(x) != 0) return mpfr_set_d(result, 0.5, MPFR_RNDN);
  Number value(composition_precision);
  logistic(value, x);
  return round_composition(result, value);
}

int silu(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t) {
  if (mpfr_zero_p(x) != 0) return mpfr_set(result, x, MPFR_RNDN);
  if (mpfr_inf_p(x) != 0)
    return mpfr_sgn(x) < 0 ? mpfr_set_d(result, -0.0, MPFR_RNDN) : mpfr_set(result, x, MPFR_RNDN);
  Number value(composition_precision);
  logistic(value, x);
  mpfr_mul(value, value, x, MPFR_RNDN);
  return round_composition(result, value);
}

/// x erfc(-x / sqrt(2)) / 2. Below -25 it is beyond binary32, as it is there.
int gelu(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t) {
  if (mpfr_zero_p(x) != 0) return mpfr_set(result, x, MPFR_RNDN);
  if (mpfr_inf_p(x) != 0)
    return mpfr_sgn(x) < 0 ? mpfr_set_d(result, -0.0, MPFR_RNDN) : mpfr_set(result, x, MPFR_RNDN);
  Number value(composition_precision), root(composition_precision);
  clamp_above(value, x, 10);
  if (mpfr_cmp_si(value, -25) < 0) mpfr_set_si(value, -25, MPFR_RNDN);
  mpfr_sqrt_ui(root, 2, MPFR_RNDN);
  mpfr_div(value, value, root, MPFR_RNDN);
  mpfr_neg(value, value, MPFR_RNDN);
  mpfr_erfc(value, value, MPFR_RNDN);
  mpfr_mul(value, value, x, MPFR_RNDN);
  mpfr_div_2ui(value, value, 1, MPFR_RNDN);
  return round_composition(result, value);
}

/// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
int softplus(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t) {
  if (mpfr_inf_p(x) != 0)
    return mpfr_sgn(x) < 0 ? mpfr_set_zero(result, 1), 0 : mpfr_set(result, x, MPFR_RNDN);
  Number value(composition_precision);
  mpfr_abs(value, x, MPFR_RNDN);
  if (mpfr_sgn(x) > 0) clamp_above(value, x, 45);
  mpfr_neg(value, value, MPFR_RNDN);
  mpfr_exp(value, value, MPFR_RNDN);
  mpfr_log1p(value, value, MPFR_RNDN);
  if (mpfr_sgn(x) > 0) mpfr_add(value, value, x, MPFR_RNDN);
  return round_composition(result, value);
}

const std::map<std::string_view, Function>& functions() {
  static const std::map<std::string_view, Function> map{
      {"exp", mpfr_exp},   {"exp2", mpfr_exp2},    {"exp10", mpfr_exp10}, {"expm1", mpfr_expm1},
      {"log", mpfr_log},   {"log2", mpfr_log2},    {"log10", mpfr_log10}, {"log1p", mpfr_log1p},
      {"sin", mpfr_sin},   {"cos", mpfr_cos},      {"tan", mpfr_tan},     {"asin", mpfr_asin},
      {"acos", mpfr_acos}, {"atan", mpfr_atan},    {"sinh", mpfr_sinh},   {"cosh", mpfr_cosh},
      {"tanh", mpfr_tanh}, {"asinh", mpfr_asinh},  {"acosh", mpfr_acosh}, {"atanh", mpfr_atanh},
      {"cbrt", mpfr_cbrt}, {"rsqrt", rsqrt},       {"rcp", rcp},          {"erf", mpfr_erf},
      {"erfc", mpfr_erfc}, {"tgamma", mpfr_gamma}, {"lgamma", lgamma},    {"sigmoid", sigmoid},
      {"gelu", gelu},      {"silu", silu},         {"softplus", softplus}};
  return map;
}

}  // namespace

Rounded function_of_half(std::string_view name, std::uint16_t a) {
  return round(evaluate(functions().at(name), a));
}

Rounded pow(std::uint16_t x, std::uint16_t y) {
  return round(evaluate(mpfr_pow, x, y));
}
Rounded hypot(std::uint16_t x, std::uint16_t y) {
  return round(evaluate(mpfr_hypot, x, y));
}
Rounded atan2(std::uint16_t y, std::uint16_t x) {
  return round(evaluate(mpfr_atan2, y, x));
}

std::uint32_t pow_to_odd(std::uint16_t x, std::uint16_t y) {
  return binary32_to_odd(evaluate(mpfr_pow, x, y).sticky);
}
std::uint32_t hypot_to_odd(std::uint16_t x, std::uint16_t y) {
  return binary32_to_odd(evaluate(mpfr_hypot, x, y).sticky);
}
std::uint32_t atan2_to_odd(std::uint16_t y, std::uint16_t x) {
  return binary32_to_odd(evaluate(mpfr_atan2, y, x).sticky);
}

}  // namespace oracle
