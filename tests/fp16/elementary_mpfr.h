#pragma once
/// The elementary functions of binary64 beside MPFR, the distance between the two, and where to compare.

#include <mpfr.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "fp16/elementary_pow.h"
#include "tests/oracle/mpfr_number.h"

namespace fp16 {

class ExactNumber : public oracle::mpfr::Number {
 public:
  ExactNumber() : Number(160) {}
  explicit ExactNumber(double value) : ExactNumber() { mpfr_set_d(*this, value, MPFR_RNDN); }
};

/// |result - exact| in units of exact's last binary64 place (2^-1074 among the subnormals); +inf where one is
/// NaN and the other is not, where one is infinite and the other would not round to it, and for a wrong zero.
inline double error_ulp(double result, mpfr_srcptr exact) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  const double rounded = mpfr_get_d(exact, MPFR_RNDN);
  if (std::isnan(result) || std::isnan(rounded))
    return std::isnan(result) && std::isnan(rounded) ? 0.0 : wrong;
  if (std::isinf(result)) return result == rounded ? 0.0 : wrong;
  if (mpfr_inf_p(exact) != 0 || (result == 0 && std::signbit(result) != std::signbit(rounded))) return wrong;
  const mpfr_exp_t exponent =
      mpfr_zero_p(exact) != 0 ? -1074 : std::max<mpfr_exp_t>(mpfr_get_exp(exact) - 53, -1074);
  ExactNumber difference;
  mpfr_sub_d(difference, exact, result, MPFR_RNDN);
  mpfr_mul_2si(difference, difference, -exponent, MPFR_RNDN);
  return std::fabs(mpfr_get_d(difference, MPFR_RNDN));
}

struct DoubleFunction {
  std::string_view name;
  double (*function)(double);
  void (*reference)(mpfr_ptr result, mpfr_srcptr x);
  double max_error_ulp;  ///< as the header states it
  double range;          ///< where it is neither constant nor linear: up to there in both directions
};

namespace reference {

template <int (*function)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)>
void by_mpfr(mpfr_ptr result, mpfr_srcptr x) {
  function(result, x, MPFR_RNDN);
}

/// e^-|x|
inline void decay(mpfr_ptr result, mpfr_srcptr x) {
  mpfr_abs(result, x, MPFR_RNDN);
  mpfr_neg(result, result, MPFR_RNDN);
  mpfr_exp(result, result, MPFR_RNDN);
}

inline void sigmoid(mpfr_ptr result, mpfr_srcptr x) {
  ExactNumber numerator(1.0), denominator;
  decay(result, x);
  mpfr_add_ui(denominator, result, 1, MPFR_RNDN);
  if (mpfr_sgn(x) < 0) mpfr_set(numerator, result, MPFR_RNDN);
  mpfr_div(result, numerator, denominator, MPFR_RNDN);
}

inline void softplus(mpfr_ptr result, mpfr_srcptr x) {
  decay(result, x);
  mpfr_log1p(result, result, MPFR_RNDN);
  if (mpfr_sgn(x) > 0) mpfr_add(result, result, x, MPFR_RNDN);
}

inline void normal_cdf(mpfr_ptr result, mpfr_srcptr x) {
  ExactNumber root_of_half(0.5);
  mpfr_sqrt(root_of_half, root_of_half, MPFR_RNDN);
  mpfr_mul(result, x, root_of_half, MPFR_RNDN);
  mpfr_neg(result, result, MPFR_RNDN);
  mpfr_erfc(result, result, MPFR_RNDN);
  mpfr_mul_d(result, result, 0.5, MPFR_RNDN);
}

}  // namespace reference

inline constexpr std::array double_functions{
    DoubleFunction{"exp", exp, reference::by_mpfr<mpfr_exp>, 0.90, 750},
    DoubleFunction{"expm1", expm1, reference::by_mpfr<mpfr_expm1>, 1.20, 40},
    DoubleFunction{"log", log, reference::by_mpfr<mpfr_log>, 0.90, 4},
    DoubleFunction{"log1p", log1p, reference::by_mpfr<mpfr_log1p>, 0.95, 4},
    DoubleFunction{"sigmoid", sigmoid, reference::sigmoid, 2.45, 40},
    DoubleFunction{"softplus", softplus, reference::softplus, 1.90, 40},
    DoubleFunction{"tanh", tanh, reference::by_mpfr<mpfr_tanh>, 1.40, 20},
    DoubleFunction{"erf", erf, reference::by_mpfr<mpfr_erf>, 1.40, 6},
    DoubleFunction{"normal_cdf", normal_cdf, reference::normal_cdf, 4.00, 39},
};

/// 64 bits that look random (Vigna's splitmix64).
inline std::uint64_t mixed(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Uniform in [-1, 1).
inline double uniform(std::uint64_t index) {
  return static_cast<double>(static_cast<std::int64_t>(mixed(index))) * 0x1p-63;
}

/// Four strata in turn: any bits at all; even over the range; even in the exponent from 2^-64 to 2^10; and
/// within 2^-20 of -1 or 1 or of a multiple of a quarter of ln 2.
inline double sample(std::uint64_t index, double range) {
  const std::uint64_t random = mixed(index);
  switch (index % 4) {
    case 0:
      return std::bit_cast<double>(random);
    case 1:
      return uniform(random) * range;
    case 2:
      return std::ldexp(uniform(random), static_cast<int>(random % 75) - 64);
    default: {
      const double quarters = static_cast<double>(static_cast<int>(random % 64) - 32);
      const double centre = random % 5 == 0 ? std::copysign(1.0, quarters) : quarters * 0.17328679513998632;
      return centre + std::ldexp(uniform(random), -20 - static_cast<int>(random >> 8 & 31));
    }
  }
}

inline double error_at(const DoubleFunction& row, double x) {
  thread_local ExactNumber argument, exact;
  mpfr_set_d(argument, x, MPFR_RNDN);
  row.reference(exact, argument);
  return error_ulp(row.function(x), exact);
}

struct Power {
  double x, y;
};

inline constexpr double max_error_of_pow = 0.95;

/// Three strata of x in turn, any positive number, near 1, and up to 8; y takes x^y anywhere from below the
/// subnormals to beyond the largest number.
inline Power sample_power(std::uint64_t index) {
  const std::uint64_t random = mixed(index);
  double x = std::fabs(uniform(random)) * 8;
  if (index % 3 == 0) x = std::bit_cast<double>(random >> 1);
  if (index % 3 == 1) x = 1 + std::ldexp(uniform(random), -1 - static_cast<int>(random % 50));
  return {x, uniform(~random) * 750 / std::log(x)};
}

inline double error_at(const Power& power) {
  thread_local ExactNumber x, y, exact;
  mpfr_set_d(x, power.x, MPFR_RNDN);
  mpfr_set_d(y, power.y, MPFR_RNDN);
  mpfr_pow(exact, x, y, MPFR_RNDN);
  return error_ulp(pow(power.x, power.y), exact);
}

}  // namespace fp16
