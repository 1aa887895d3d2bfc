#include "fp16/elementary_pow.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/fp16/elementary_oracle.h"

namespace fp16 {
namespace {

static_assert(pow(2.0f, 10.0f) == 1024.0f && pow(2.0, -1074.0) == 0x1p-1074 && pow(-2.0, 3.0) == -8.0);

template <class Real>
constexpr Real infinity = std::numeric_limits<Real>::infinity();

template <class Real>
struct SpecialCase {
  Real x, y, expected;
};

/// IEEE 754-2019 clause 9.2.1.
template <class Real>
void check_special_cases() {
  constexpr Real inf = infinity<Real>, nan = std::numeric_limits<Real>::quiet_NaN();
  constexpr Real largest = std::numeric_limits<Real>::max(),
                 smallest = std::numeric_limits<Real>::denorm_min();
  constexpr Real largest_odd = 2 / std::numeric_limits<Real>::epsilon() - 1;
  const auto check = [](SpecialCase<Real> row) {
    CAPTURE(row.x);
    CAPTURE(row.y);
    const Real expected = std::isnan(row.expected) ? elementary::default_nan<Real> : row.expected;
    CHECK(elementary::bits_of(pow(row.x, row.y)) == elementary::bits_of(expected));
  };
  for (Real x : {Real{0}, -Real{0}, Real{1}, Real{-1}, Real{7}, -smallest, largest, inf, -inf, nan, -nan}) {
    check({x, 0, 1});
    check({x, -Real{0}, 1});
  }
  for (Real y : {Real{0.5}, Real{-3}, smallest, -largest, inf, -inf, nan, -nan}) check({1, y, 1});
  for (Real y : {inf, -inf}) check({-1, y, 1});
  for (Real y : {Real{1}, Real{3}, largest_odd}) {
    check({0, y, 0});
    check({-Real{0}, y, -Real{0}});
    check({0, -y, inf});
    check({-Real{0}, -y, -inf});
    check({inf, y, inf});
    check({-inf, y, -inf});
    check({inf, -y, 0});
    check({-inf, -y, -Real{0}});
    check({-1, y, -1});
    check({-1, -y, -1});
  }
  for (Real y : {Real{2}, Real{0.5}, Real{2.5}, smallest, largest_odd + 1, largest, inf}) {
    for (Real sign : {Real{1}, Real{-1}}) {
      check({sign * 0, y, 0});
      check({sign * 0, -y, inf});
      check({sign * inf, y, inf});
      check({sign * inf, -y, 0});
    }
  }
  for (Real above : {1 + std::numeric_limits<Real>::epsilon(), Real{2}, largest}) {
    for (Real y : {inf, largest}) {
      check({above, y, inf});
      check({above, -y, 0});
      check({-above, y, inf});
      check({-above, -y, 0});
    }
  }
  for (Real below : {1 - std::numeric_limits<Real>::epsilon() / 2, Real{0.5}, smallest}) {
    for (Real y : {inf, largest}) {
      check({below, y, 0});
      check({below, -y, inf});
      check({-below, y, 0});
      check({-below, -y, inf});
    }
  }
  for (Real y : {Real{0.5}, Real{-0.5}, Real{2.5}, smallest, largest_odd / 2}) {
    for (Real x : {Real{-1}, Real{-2}, -smallest, -largest}) check({x, y, nan});
  }
  for (Real other : {Real{0}, Real{-2}, Real{0.5}, inf, -inf, nan}) {
    check({nan, other == 0 ? Real{1} : other, nan});
    if (other != 0) check({-nan, other, nan});
    check({other, nan, nan});
  }
  check({-2, 3, -8});
  check({-2, -3, Real{-0.125}});
  check({-2, 4, 16});
}

TEST_CASE("pow of special values is as in IEEE 754-2019") {
  check_special_cases<float>();
  check_special_cases<double>();
}

TEST_CASE("powers of two with an integer exponent are exact") {
  for (int exponent = -1074; exponent < 1024; ++exponent) {
    CAPTURE(exponent);
    CHECK(pow(2.0, double(exponent)) == std::ldexp(1.0, exponent));
    CHECK(pow(0.5, double(-exponent)) == std::ldexp(1.0, exponent));
    if (exponent < -149 || exponent > 127) continue;
    CHECK(pow(2.0f, float(exponent)) == std::ldexp(1.0f, exponent));
    CHECK(pow(0.5f, float(-exponent)) == std::ldexp(1.0f, exponent));
  }
}

/// A pair of binary32 such that x^y lies between 2^-160 and 2^140.
struct Pair {
  float x, y;
};

Pair sample(std::uint64_t index) {
  const std::uint64_t random = index * 0x9e3779b97f4a7c15u;
  const double unit = static_cast<double>(random & 0xffffffff) * 0x1p-32;
  const auto high = static_cast<std::uint32_t>(random >> 32);
  float x = std::bit_cast<float>(high % 0x7f800000u);                             // any
  if (index % 3 == 1) x = std::bit_cast<float>(0x3f800000u + high % 0x1000000u);  // 1 to 4
  if (index % 3 == 2) x = std::bit_cast<float>(0x3f800000u - 0x800u + high % 0x1000u);
  return {x, static_cast<float>((unit * 300 - 160) / std::log2(static_cast<double>(x)))};
}

TEST_CASE("in binary32 the stated maximum error of pow holds for six million pairs") {
  double worst = 0;
  Pair where{};
  for (std::uint64_t index = 1; index <= 6'000'000; ++index) {
    const auto [x, y] = sample(index);
    const double error = error_ulp(pow(x, y), std::pow(static_cast<double>(x), static_cast<double>(y)));
    if (error > worst) worst = error, where = {x, y};
  }
  CAPTURE(where.x);
  CAPTURE(where.y);
  CHECK(worst <= 0.95);
  CHECK(worst > 0.5);
}

/// Bases next to 1, exponents that take them to either end of the range, and results that are exact or
/// halfway.
TEST_CASE("in binary32 the stated maximum error of pow holds in hard cases") {
  double worst = 0;
  const auto consider = [&](float x, float y) {
    const double exact = std::pow(static_cast<double>(x), static_cast<double>(y));
    worst = std::max(worst, error_ulp(pow(x, y), exact));
  };
  for (std::uint32_t offset = 1; offset < 3000; ++offset) {
    for (float x : {std::bit_cast<float>(0x3f800000u + offset), std::bit_cast<float>(0x3f800000u - offset)}) {
      const double logarithm = std::log2(static_cast<double>(x));
      for (double exponent : {-150.0, -149.0, -126.5, -126.0, -1.0, 0.5, 1.0, 127.0, 127.99999, 128.0})
        consider(x, static_cast<float>(exponent / logarithm));
    }
  }
  for (int base = 2; base < 4096; ++base)
    for (float y : {1.0f, 2.0f, 3.0f, 0.5f, 1.5f, -0.5f, -1.0f, 0.25f}) consider(static_cast<float>(base), y);
  CHECK(worst <= 0.95);
}

}  // namespace
}  // namespace fp16
