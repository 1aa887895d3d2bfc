#include "tests/oracle/mpfr_arithmetic.h"

#include <mpfr.h>

#include <cmath>

#include "tests/oracle/mpfr_number.h"

namespace oracle::mpfr {
namespace {

constexpr mpfr_prec_t half_precision = 11;
constexpr std::array<mpfr_rnd_t, directions.size()> mpfr_directions{MPFR_RNDN, MPFR_RNDZ, MPFR_RNDU,
                                                                    MPFR_RNDD};

class Half : public Number {
 public:
  Half() : Number(half_precision) {}

  void set(std::uint16_t code) {
    const mpfr_ptr value = *this;
    const int exponent = (code >> 10) & 31, trailing = code & 1023;
    if (exponent == 31 && trailing != 0) {
      mpfr_set_nan(value);
    } else if (exponent == 31) {
      mpfr_set_inf(value, 1);
    } else if (exponent == 0) {
      mpfr_set_ui_2exp(value, trailing, -24, MPFR_RNDN);
    } else {
      mpfr_set_ui_2exp(value, 1024 + trailing, exponent - 25, MPFR_RNDN);
    }
    mpfr_setsign(value, value, (code & 0x8000) != 0, MPFR_RNDN);
  }

  std::uint16_t code() const {
    const mpfr_srcptr value = *this;
    if (mpfr_nan_p(value)) return 0xfe00;
    const int sign = mpfr_signbit(value) ? 0x8000 : 0;
    if (mpfr_inf_p(value)) return static_cast<std::uint16_t>(sign | 0x7c00);
    if (mpfr_zero_p(value)) return static_cast<std::uint16_t>(sign);
    const auto exponent = static_cast<int>(mpfr_get_exp(value));  // the significand is in [1/2, 1)
    const double magnitude = std::abs(mpfr_get_d(value, MPFR_RNDN));
    const int field = exponent < -13 ? 0 : exponent + 14;
    const double units = std::ldexp(magnitude, field == 0 ? 24 : 25 - field);
    return static_cast<std::uint16_t>(sign |
                                      ((field << 10) + static_cast<int>(units) - (field == 0 ? 0 : 1024)));
  }
};

/// compute(result, direction) as MPFR's functions: it returns how the rounded result compares to the exact
/// one.
template <typename Compute>
Rounded in_all_directions(Compute compute) {
  thread_local Half result;
  mpfr_set_emin(-23);
  mpfr_set_emax(16);
  Rounded rounded;
  for (std::size_t i = 0; i < directions.size(); ++i) {
    mpfr_clear_flags();
    int ternary = compute(result, mpfr_directions[i]);
    ternary = mpfr_subnormalize(result, ternary, mpfr_directions[i]);
    rounded[i] = {.bits = result.code(),
                  .inexact = ternary != 0,
                  .underflow = ternary != 0 && mpfr_underflow_p() != 0,  // MPFR's is tininess alone
                  .overflow = mpfr_overflow_p() != 0,
                  .divide_by_zero = mpfr_divby0_p() != 0,
                  .invalid = mpfr_nanflag_p() != 0};
  }
  return rounded;
}

using BinaryFunction = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

Rounded evaluate(BinaryFunction function, std::uint16_t a, std::uint16_t b) {
  thread_local Half x, y;
  x.set(a);
  y.set(b);
  return in_all_directions(
      [&](mpfr_ptr result, mpfr_rnd_t direction) { return function(result, x, y, direction); });
}

}  // namespace

Rounded add(std::uint16_t a, std::uint16_t b) {
  return evaluate(mpfr_add, a, b);
}
Rounded subtract(std::uint16_t a, std::uint16_t b) {
  return evaluate(mpfr_sub, a, b);
}
Rounded multiply(std::uint16_t a, std::uint16_t b) {
  return evaluate(mpfr_mul, a, b);
}
Rounded divide(std::uint16_t a, std::uint16_t b) {
  return evaluate(mpfr_div, a, b);
}

Rounded fma(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  thread_local Half x, y, z;
  x.set(a);
  y.set(b);
  z.set(c);
  return in_all_directions(
      [&](mpfr_ptr result, mpfr_rnd_t direction) { return mpfr_fma(result, x, y, z, direction); });
}

Rounded convert(double value) {
  return in_all_directions(
      [&](mpfr_ptr result, mpfr_rnd_t direction) { return mpfr_set_d(result, value, direction); });
}

}  // namespace oracle::mpfr
