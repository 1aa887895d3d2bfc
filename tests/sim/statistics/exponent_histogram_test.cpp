#include "sim/statistics/exponent_histogram.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/statistics/cast_counts.h"
#include "tests/sim/statistics/cast_samples.h"

using sim::ExponentHistogram;

namespace {

ExponentHistogram histogram_of(std::span<const float> values) {
  ExponentHistogram histogram;
  histogram.add(values);
  return histogram;
}

}  // namespace

TEST_CASE("hand-made values fall into their octaves and classes") {
  const std::vector<float> values{1.0f, -1.0f,     0x1.ffbffep0F, 0x1.ffcp0F,   -0x1.ffep0F,
                                  2.0f, 0.0f,      -0.0f,         INFINITY,     NAN,
                                  NAN,  0x1p-149F, 0x1.ffep-138F, 0x1.ffdp-128F};
  const ExponentHistogram histogram = histogram_of(values);
  CHECK(histogram.octave(0) ==
        ExponentHistogram::Octave{.total = 5, .powers_of_two = 2, .near_next = 2, .top = 1});
  CHECK(histogram.octave(1) ==
        ExponentHistogram::Octave{.total = 1, .powers_of_two = 1, .near_next = 0, .top = 0});
  CHECK(histogram.octave(-149) ==
        ExponentHistogram::Octave{.total = 1, .powers_of_two = 1, .near_next = 0, .top = 0});
  CHECK(histogram.octave(-138) ==
        ExponentHistogram::Octave{.total = 1, .powers_of_two = 0, .near_next = 1, .top = 1});
  CHECK(histogram.octave(-128) ==
        ExponentHistogram::Octave{.total = 1, .powers_of_two = 0, .near_next = 1, .top = 0});
  CHECK(histogram.zero() == 2);
  CHECK(histogram.infinite() == 1);
  CHECK(histogram.nan() == 2);
  CHECK(histogram.nonzero_finite() == 9);
  CHECK(histogram.total() == values.size());
  CHECK(histogram.max_abs() == 2.0f);
  CHECK(histogram.lowest_exponent() == -149);
  CHECK(histogram.highest_exponent() == 1);
}

TEST_CASE("an empty histogram, zeros and non-finite values have no exponents") {
  for (const std::vector<float>& values : {std::vector<float>{}, {0.0f, -0.0f}, {INFINITY, NAN, -INFINITY}}) {
    const ExponentHistogram histogram = histogram_of(values);
    CHECK(histogram.nonzero_finite() == 0);
    CHECK(histogram.max_abs() == 0);
    CHECK_FALSE(histogram.lowest_exponent().has_value());
    CHECK_FALSE(histogram.highest_exponent().has_value());
    CHECK_FALSE(histogram.log2_headroom().has_value());
  }
}

TEST_CASE("predictions equal casting value by value at every scale") {
  const std::vector<float> values = cast_samples::values();
  const ExponentHistogram histogram = histogram_of(values);
  for (int log2_scale = -180; log2_scale <= 180; ++log2_scale) {
    CAPTURE(log2_scale);
    const sim::CastCounts counts = cast_samples::slow_count(values, log2_scale);
    REQUIRE(histogram.flushed_at_scale(log2_scale) == counts.flushed);
    REQUIRE(histogram.subnormal_at_scale(log2_scale) == counts.subnormal);
    REQUIRE(histogram.overflowed_at_scale(log2_scale) == counts.overflowed);
  }
}

TEST_CASE("predictions equal the direct count on a million gradient-like values") {
  std::vector<float> values(1'000'003);
  std::mt19937 random(2);
  for (float& value : values) {
    // 40 octaves, both signs, a third zero; significands of 12 bits make powers of two and edges frequent.
    const auto bits = static_cast<std::uint32_t>(random());
    const std::uint32_t exponent = 85 + (bits >> 8) % 40;
    const std::uint32_t fraction = static_cast<std::uint32_t>(random()) & 0x7FF000U;
    value = bits % 3 == 0 ? 0.0f : std::bit_cast<float>((bits & 0x80000000U) | exponent << 23 | fraction);
  }
  const ExponentHistogram histogram = histogram_of(values);
  for (int log2_scale = -10; log2_scale <= 40; ++log2_scale) {
    CAPTURE(log2_scale);
    const sim::CastCounts counts = sim::count_casts(values, log2_scale);
    REQUIRE(histogram.zero() == counts.zero_before);
    REQUIRE(histogram.flushed_at_scale(log2_scale) == counts.flushed);
    REQUIRE(histogram.subnormal_at_scale(log2_scale) == counts.subnormal);
    REQUIRE(histogram.overflowed_at_scale(log2_scale) == counts.overflowed);
  }
}

TEST_CASE("counts do not depend on how the values were split or ordered") {
  std::vector<float> values = cast_samples::values();
  const ExponentHistogram whole = histogram_of(values);
  std::mt19937 random(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::ranges::shuffle(values, random);
    ExponentHistogram first, second;
    std::span<const float> rest(values);
    while (!rest.empty()) {
      const std::size_t size = std::min<std::size_t>(rest.size(), random() % 1500);
      (random() % 2 ? first : second).add(rest.first(size));
      rest = rest.subspan(size);
    }
    first += second;
    REQUIRE(first == whole);
  }
}

TEST_CASE("max_abs is the exact largest finite magnitude, whatever non-finite values stand beside it") {
  std::vector<float> values(5000, 0.25f);
  values[4998] = -0x1.234568p5F;
  CHECK(histogram_of(values).max_abs() == 0x1.234568p5F);
  values[4000] = NAN;
  values[4997] = -INFINITY;
  CHECK(histogram_of(values).max_abs() == 0x1.234568p5F);
}

TEST_CASE("log2_headroom is the largest scale that keeps the largest value within 65504") {
  for (const float value : cast_samples::values()) {
    if (value == 0 || !std::isfinite(value)) continue;
    const int headroom = histogram_of({&value, 1}).log2_headroom().value();
    CAPTURE(value);
    REQUIRE(std::ldexp(std::fabs(static_cast<double>(value)), headroom) <= 65504.0);
    REQUIRE(std::ldexp(std::fabs(static_cast<double>(value)), headroom + 1) > 65504.0);
  }
}
