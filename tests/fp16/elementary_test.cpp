#include "fp16/elementary.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "tests/fp16/elementary_oracle.h"

namespace fp16 {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float smallest_subnormal = std::numeric_limits<float>::denorm_min();
constexpr float largest = std::numeric_limits<float>::max();

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

static_assert(exp(0.0f) == 1.0f && log(1.0f) == 0.0f && sigmoid(0.0f) == 0.5f);
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
    for (float centre : {0.0f, smallest_subnormal, 0x1p-126f, 0.34657359f, 0.70710678f, 1.0f, 1.41421356f,
                         2.0f, 88.722839f, 87.336545f, 103.278929f, 103.972077f, 104.0f, largest}) {
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
