#include "sim/tensor/integer_power.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

TEST_CASE("integer power: exact where every product is") {
  static_assert(sim::integer_power(0.5, 10) == 0x1p-10);
  static_assert(sim::integer_power(3, 33) == 5559060566555523);
  static_assert(sim::integer_power(0, 0) == 1);
  CHECK(sim::integer_power(0, 5) == 0);
  CHECK(sim::integer_power(0.9, 1) == 0.9);
  CHECK(sim::integer_power(0.9, 100'000) == 0);
}

TEST_CASE("integer power: relative error within its bound") {
  for (const double base : {0.3, 0.7, 0.9, 0.999, 1.0001}) {
    long double exact = 1;
    for (int exponent = 1; exponent <= 500; ++exponent) {
      exact *= base;
      CHECK(std::fabs(sim::integer_power(base, exponent) / exact - 1) <= 2.1L * exponent * 0x1p-53L);
    }
  }
}
