#include "fp16/elementary.h"

#include <doctest/doctest.h>
#include <math.h>  // C's functions without a namespace

#include <bit>
#include <cstdint>
#include <limits>

#include "tests/fp16/elementary_oracle.h"

namespace unqualified {

using namespace fp16;
template <typename Real>
concept calls_a_function = requires(Real x) {
  exp(x);
}
|| requires(Real x) {
  expm1(x);
}
|| requires(Real x) {
  log(x);
}
|| requires(Real x) {
  log1p(x);
}
|| requires(Real x) {
  tanh(x);
}
|| requires(Real x) {
  erf(x);
};
static_assert(!calls_a_function<float> && !calls_a_function<double>);
static_assert(requires(double x) { fp16::exp(x); });

}  // namespace unqualified

namespace fp16 {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float smallest_subnormal = std::numeric_limits<float>::denorm_min();
constexpr float largest = std::numeric_limits<float>::max();

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

static_assert(exp(0.0f) == 1.0f && log(1.0f) == 0.0f && sigmoid(0.0f) == 0.5f);
static_assert(tanh(0.0f) == 0.0f && erf(0.0) == 0.0 && normal_cdf(0.0) == 0.5 && expm1(0.0) == 0.0 &&
              log1p(0.0f) == 0.0f && softplus(0.0f) == 0x1.62e43p-1f);
static_assert(exp(1.0f) == 0x1.5bf0a8p1f && log(2.0f) == 0x1.62e43p-1f);

TEST_CASE("exp at the ends of its range") {
  CHECK(exp(-infinity) == 0.0f);
  CHECK(exp(infinity) == infinity);
  CHECK(exp(-0.0f) == 1.0f);
  CHECK(exp(smallest_subnormal) == 1.0f);
  CHECK(exp(0x1.62e42ep6f) < infinity);
  CHECK(exp(0x1.62e43p6f) == infinity);
  CHECK(exp(largest) == infinity);
  CHECK(exp(-0x1.9d1d9ep6f) == smallest_subnormal);
  CHECK(exp(-0x1.9fe368p6f) == smallest_subnormal);
  CHECK(exp(-0x1.9fe36ap6f) == 0.0f);
  CHECK(bits_of(exp(-largest)) == 0);
}

TEST_CASE("log at the ends of its range") {
  CHECK(log(0.0f) == -infinity);
  CHECK(log(-0.0f) == -infinity);
  CHECK(log(infinity) == infinity);
  CHECK(log(smallest_subnormal) == -0x1.9d1da0p6f);
  CHECK(log(largest) == 0x1.62e43p6f);
  for (float negative : {-smallest_subnormal, -1.0f, -largest, -infinity}) {
    CAPTURE(negative);
    CHECK(bits_of(log(negative)) == default_nan_bits<binary32>);
  }
}

TEST_CASE("sigmoid at the ends of its range") {
  CHECK(bits_of(sigmoid(-infinity)) == 0);
  CHECK(sigmoid(infinity) == 1.0f);
  CHECK(sigmoid(-0.0f) == 0.5f);
  CHECK(sigmoid(20.0f) == 1.0f);
  CHECK(sigmoid(-100.0f) == exp(-100.0f));
  CHECK(sigmoid(-0x1.9fe368p6f) == smallest_subnormal);
  CHECK(sigmoid(-0x1.9fe36ap6f) == 0.0f);
}

/// What both formats have in common; the first NaN is the default one.
template <class Real>
void check_limits() {
  constexpr Real inf = std::numeric_limits<Real>::infinity(), zero = 0;
  constexpr Real smallest = std::numeric_limits<Real>::denorm_min(),
                 largest = std::numeric_limits<Real>::max();
  const auto same = [](Real got, Real expected) {
    CAPTURE(expected);
    CHECK(elementary::bits_of(got) == elementary::bits_of(expected));
  };
  for (Real infinite : {inf, largest}) {
    same(exp(infinite), inf);
    same(exp(-infinite), 0);
    same(expm1(infinite), inf);
    same(expm1(-infinite), -1);
    same(log1p(-infinite), elementary::default_nan<Real>);
    same(sigmoid(infinite), 1);
    same(sigmoid(-infinite), 0);
    same(softplus(infinite), infinite);
    same(softplus(-infinite), 0);
    same(tanh(infinite), 1);
    same(tanh(-infinite), -1);
    same(erf(infinite), 1);
    same(erf(-infinite), -1);
    same(normal_cdf(infinite), 1);
    same(normal_cdf(-infinite), 0);
  }
  same(log(inf), inf);
  same(log1p(inf), inf);
  same(log(zero), -inf);
  same(log(-zero), -inf);
  same(log(Real{1}), zero);
  same(log1p(Real{-1}), -inf);
  same(log1p(-1 - std::numeric_limits<Real>::epsilon()), elementary::default_nan<Real>);
  for (Real tiny : {zero, smallest, 3 * smallest, std::numeric_limits<Real>::min()}) {
    for (Real x : {tiny, -tiny}) {
      same(expm1(x), x);
      same(log1p(x), x);
      same(tanh(x), x);
      same(exp(x), 1);
      same(normal_cdf(x), Real{0.5});
    }
  }
  same(erf(-zero), -zero);
  same(erf(smallest), smallest);
  same(erf(-8 * smallest), -9 * smallest);  // 2/sqrt(pi) = 1.128
}

TEST_CASE("the limits of all functions, in binary32 and binary64") {
  check_limits<float>();
  check_limits<double>();
}

TEST_CASE("bounded functions stay within their bounds, and are odd") {
  for (std::uint64_t bits = 0; bits < 0x7f800000; bits += 977) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const bool bounded = tanh(x) <= 1.0f && erf(x) <= 1.0f && normal_cdf(x) <= 1.0f && sigmoid(x) <= 1.0f;
    const bool odd = bits_of(tanh(-x)) == bits_of(-tanh(x)) && bits_of(erf(-x)) == bits_of(-erf(x));
    if (bounded && odd) continue;
    CAPTURE(x);
    CHECK(bounded);
    CHECK(odd);
  }
}

TEST_CASE("normal_cdf fades out through the subnormals") {
  CHECK(normal_cdf(-12.9f) > 0x1p-126f);
  CHECK(normal_cdf(-12.96f) < 0x1p-126f);
  CHECK(normal_cdf(-14.170f) == smallest_subnormal);
  CHECK(normal_cdf(-14.171f) == 0.0f);
  CHECK(normal_cdf(-38.485) == 0x1p-1074);
  CHECK(normal_cdf(-38.486) == 0.0);
}

TEST_CASE("every NaN gives the default NaN") {
  for (const ElementaryFunction& row : elementary_functions) {
    for (std::uint32_t nan : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffc12345u, 0xffffffffu}) {
      CAPTURE(row.name);
      CAPTURE(nan);
      CHECK(bits_of(row.function(std::bit_cast<float>(nan))) == default_nan_bits<binary32>);
    }
  }
}

struct WorstCase {
  double error_ulp = 0;
  float input = 0;
};

void consider(WorstCase& worst, const ElementaryFunction& row, std::uint32_t bits) {
  const auto x = std::bit_cast<float>(bits);
  const double error = error_ulp(row.function(x), row.reference(x));
  if (error > worst.error_ulp) worst = {error, x};
}

TEST_CASE("stated maximum errors hold over the whole range") {
  constexpr std::uint32_t stride = 1021;  // prime: 4.2 million inputs with all kinds of last bits
  for (const ElementaryFunction& row : elementary_functions) {
    WorstCase worst;
    for (std::uint64_t bits = 0; bits < 0x100000000; bits += stride) {
      consider(worst, row, static_cast<std::uint32_t>(bits));
    }
    CAPTURE(row.name);
    CAPTURE(worst.input);
    CHECK(worst.error_ulp <= row.max_error_ulp);
    CHECK(worst.error_ulp > 0.5);
  }
}

TEST_CASE("stated maximum errors hold where the algorithms change course") {
  for (const ElementaryFunction& row : elementary_functions) {
    WorstCase worst;
    for (float centre : {0.0f,        smallest_subnormal,
                         0x1p-126f,   0.34657359f,
                         0.70710678f, 0.29289322f,
                         0.41421356f, 1.0f,
                         1.125f,      1.41421356f,
                         2.0f,        5.0f,
                         9.0109f,     12.94995f,
                         14.17019f,   17.3287f,
                         0x1p-64f,    88.722839f,
                         87.336545f,  103.278929f,
                         103.972077f, 104.0f,
                         largest}) {
      for (float signed_centre : {centre, -centre}) {
        for (std::uint32_t offset = 0; offset < 20000; ++offset) {
          consider(worst, row, bits_of(signed_centre) - 10000 + offset);
        }
      }
    }
    CAPTURE(row.name);
    CAPTURE(worst.input);
    CHECK(worst.error_ulp <= row.max_error_ulp);
  }
}

}  // namespace
}  // namespace fp16
