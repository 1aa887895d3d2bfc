#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/fp16/elementary_mpfr.h"

namespace fp16 {
namespace {

struct WorstCase {
  double error_ulp = 0;
  double input = 0;
};

void consider(WorstCase& worst, const DoubleFunction& row, double x) {
  const double error = error_at(row, x);
  if (error > worst.error_ulp) worst = {error, x};
}

TEST_CASE("in binary64 stated maximum errors hold over the whole range") {
  for (const DoubleFunction& row : double_functions) {
    WorstCase worst;
    for (std::uint64_t index = 0; index < 30000; ++index) consider(worst, row, sample(index, row.range));
    CAPTURE(row.name);
    CAPTURE(worst.input);
    CHECK(worst.error_ulp <= row.max_error_ulp);
    CHECK(worst.error_ulp > 0.5);
  }
}

TEST_CASE("in binary64 stated maximum errors hold where the algorithms change course") {
  for (const DoubleFunction& row : double_functions) {
    WorstCase worst;
    for (double centre : {0.0,
                          0x1p-1074,
                          0x1p-1022,
                          0x1p-64,
                          0.34657359027997264,
                          0.29289321881345248,
                          0.41421356237309503,
                          0.70710678118654757,
                          1.0,
                          1.0397207708399179,
                          1.125,
                          1.4142135623730951,
                          2.0,
                          10.0,
                          19.061547,
                          20.0,
                          37.429947750237048,
                          37.519379347,
                          38.485408336,
                          39.0,
                          40.0,
                          0x1p52,
                          0x1p53,
                          708.39641853226408,
                          709.78271289338397,
                          745.13321910194122,
                          746.0,
                          0x1.fffffffffffffp1023}) {
      for (double signed_centre : {centre, -centre}) {
        const auto bits = std::bit_cast<std::uint64_t>(signed_centre);
        for (std::uint64_t offset = 0; offset < 64; ++offset) {
          consider(worst, row, std::bit_cast<double>(bits - 32 + offset));
        }
      }
    }
    CAPTURE(row.name);
    CAPTURE(worst.input);
    CHECK(worst.error_ulp <= row.max_error_ulp);
  }
}

TEST_CASE("in binary64 the stated maximum error of pow holds") {
  double worst = 0;
  Power where{};
  for (std::uint64_t index = 0; index < 30000; ++index) {
    const Power power = sample_power(index);
    const double error = error_at(power);
    if (error > worst) worst = error, where = power;
  }
  CAPTURE(where.x);
  CAPTURE(where.y);
  CHECK(worst <= max_error_of_pow);
  CHECK(worst > 0.5);
}

}  // namespace
}  // namespace fp16
