#include "fp16/exponent_histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <stdexcept>

#include "fp16/codec.h"
#include "sim/statistics/cast_counts.h"
#include "tests/foreign_environment.h"
#include "tests/sim/statistics/cast_samples.h"

using fp16::ExponentHistogram;

namespace {

template <class Stored>
ExponentHistogram histogram_of(std::span<const Stored> values) {
  ExponentHistogram histogram;
  histogram.add(values);
  return histogram;
}

template <class Stored>
ExponentHistogram histogram_of(const std::vector<Stored>& values) {
  return histogram_of(std::span<const Stored>(values));
}

/// The definitions, one value at a time, with the library's arithmetic in place of bits.
struct SlowHistogram {
  std::array<ExponentHistogram::Octave, 277> octaves{};
  std::uint64_t zero = 0, infinite = 0, nan = 0;
  double max_abs = 0;

  void add(double value) {
    const double magnitude = std::fabs(value);
    if (std::isnan(value)) {
      nan += 1;
    } else if (std::isinf(value)) {
      infinite += 1;
    } else if (value == 0) {
      zero += 1;
    } else {
      const int exponent = std::ilogb(magnitude);
      ExponentHistogram::Octave& octave = octaves.at(static_cast<std::size_t>(exponent + 149));
      octave.total += 1;
      octave.powers_of_two += magnitude == std::ldexp(1.0, exponent);
      octave.near_next += magnitude >= std::ldexp(2 - 0x1p-10, exponent);
      octave.top += magnitude >= std::ldexp(2 - 0x1p-11, exponent);
      max_abs = std::max(max_abs, magnitude);
    }
  }

  bool equals(const ExponentHistogram& histogram) const {
    bool equal = zero == histogram.zero() && infinite == histogram.infinite() && nan == histogram.nan() &&
                 max_abs == histogram.max_abs();
    for (int exponent = -149; exponent <= 127; ++exponent) {
      equal &= octaves[static_cast<std::size_t>(exponent + 149)] == histogram.octave(exponent);
    }
    return equal;
  }
};

template <class Stored>
SlowHistogram slow_histogram_of(const std::vector<Stored>& values) {
  SlowHistogram histogram;
  for (const Stored value : values) histogram.add(value);
  return histogram;
}

/// The values in random order, each `times` times.
template <class Stored>
std::vector<Stored> shuffled(std::span<const Stored> values, int times) {
  std::vector<Stored> result;
  for (int i = 0; i < times; ++i) result.insert(result.end(), values.begin(), values.end());
  std::ranges::shuffle(result, std::mt19937(4));
  return result;
}

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  return codes;
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

TEST_CASE("a histogram is the same in any floating-point environment of the caller's") {
  const std::vector<float> values = cast_samples::values();
  const std::vector<double> doubles(values.begin(), values.end());
  const std::vector<float> few(values.begin(), values.begin() + 100);
  const auto codes = all_halves();
  const std::array expected{slow_histogram_of(values), slow_histogram_of(doubles), slow_histogram_of(few)};
  const ExponentHistogram of_codes = histogram_of(codes);
  for (const test::Environment& environment : test::environments) {
    std::array<ExponentHistogram, 4> found;
    {
      const test::Inside inside(environment);
      found = {histogram_of(values), histogram_of(doubles), histogram_of(few), histogram_of(codes)};
    }
    INFO(environment.name);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(expected[i].equals(found[i]));
    CHECK(found[3] == of_codes);
  }
}

TEST_CASE("every octave, class and special equals the definitions, at once and one value a call") {
  const std::vector<float> values = cast_samples::values();
  const SlowHistogram expected = slow_histogram_of(values);
  CHECK(expected.equals(histogram_of(values)));
  ExponentHistogram one_by_one;
  for (const float& value : values) one_by_one.add(std::span(&value, 1));
  CHECK(expected.equals(one_by_one));
}

TEST_CASE("spans of every length and alignment") {
  const std::vector<float> samples = shuffled<float>(cast_samples::values(), 1);
  for (const std::size_t offset : {0, 1, 5, 15}) {
    const std::span<const float> values = std::span(samples).subspan(offset, 1200);
    SlowHistogram expected;
    for (std::size_t size = 0; size < values.size(); expected.add(values[size++])) {
      CAPTURE(offset);
      CAPTURE(size);
      REQUIRE(expected.equals(histogram_of(values.first(size))));
    }
  }
}

TEST_CASE("more equal values than a counter of 16 bits holds in any lane") {
  for (const float value :
       {0.0f, -1.0f, 0x1.8p-3F, 0x1.ffcp-30F, 0x1p-130F, std::numeric_limits<float>::infinity()}) {
    const std::vector<float> values(3'000'003, value);
    CHECK(slow_histogram_of(values).equals(histogram_of(values)));
  }
}

TEST_CASE("long arrays of any octaves, with anything at any place") {
  const std::vector<float> samples = cast_samples::values();
  std::mt19937 random(5);
  // Values around 2^exponent, of which the first thousands say where the others are looked for: also wrongly.
  for (const int exponent : {-149, -140, -126, -100, -62, -61, -20, 0, 16, 60, 120, 127}) {
    for (const int shift : {-70, 0, 70}) {
      std::vector<float> values(100'003 + random() % 2000);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const int around = exponent + (i > 5000 ? shift : 0) - static_cast<int>(random() % 40);
        const float significand = 1 + static_cast<float>(random() >> 8) * 0x1p-24F;
        const bool is_zero = random() % 3 == 0;
        values[i] = is_zero ? 0.0f : std::ldexp(random() % 8 == 0 ? 1.0f : significand, around);
        if (random() % 50 == 0) values[i] = samples[random() % samples.size()];
      }
      const std::span<const float> misaligned = std::span(values).subspan(random() % 16);
      CAPTURE(exponent);
      CAPTURE(shift);
      REQUIRE(slow_histogram_of(std::vector(misaligned.begin(), misaligned.end()))
                  .equals(histogram_of(misaligned)));
    }
  }
}

TEST_CASE("arrays of few and of many octaves, with few and with many powers of two") {
  std::mt19937 random(6);
  for (const int octaves : {1, 25, 31, 32, 40, 63, 64, 200}) {
    for (const unsigned powers : {0u, 1u, 20u, 1000u}) {  // of a thousand
      std::vector<float> values(60'000);
      for (float& value : values) {
        const float significand = 1 + static_cast<float>(random() >> 8) * 0x1p-24F;
        const int exponent = 10 - static_cast<int>(random() % static_cast<unsigned>(octaves));
        value =
            random() % 4 == 0 ? 0.0f : std::ldexp(random() % 1000 < powers ? 1.0f : significand, exponent);
      }
      CAPTURE(octaves);
      CAPTURE(powers);
      REQUIRE(slow_histogram_of(values).equals(histogram_of(values)));
    }
  }
}

TEST_CASE("one value that is not ordinary at each place of a long array") {
  std::vector<float> values(70'000, 0x1.4p-3F);
  SlowHistogram expected = slow_histogram_of(values);
  expected.octaves[149 - 3].total -= 1;
  expected.nan += 1;
  for (std::size_t place = 60'000; place < 70'000; ++place) {
    values[place] = NAN;
    CAPTURE(place);
    REQUIRE(expected.equals(histogram_of(values)));
    values[place] = 0x1.4p-3F;
  }
}

TEST_CASE("all halves count as their floats do") {
  const std::vector<std::uint16_t> codes = shuffled<std::uint16_t>(all_halves(), 3);
  std::vector<float> widened;
  for (const std::uint16_t code : codes) widened.push_back(fp16::half_bits_to_float(code));
  CHECK(slow_histogram_of(widened).equals(histogram_of(codes)));
  CHECK(histogram_of(codes) == histogram_of(widened));
  for (std::size_t first = 0; first < 65536; ++first) {
    REQUIRE(histogram_of(std::span<const std::uint16_t>(codes).subspan(first, 1)) ==
            histogram_of(std::span<const float>(widened).subspan(first, 1)));
  }
  for (std::size_t size = 500; size < 1100; ++size) {
    CAPTURE(size);
    REQUIRE(histogram_of(std::span<const std::uint16_t>(codes).subspan(size, size)) ==
            histogram_of(std::span<const float>(widened).subspan(size, size)));
  }
}

TEST_CASE("doubles within binary32's range equal the definitions, whatever lies below binary32's last bit") {
  std::vector<double> values;
  for (const float value : cast_samples::values()) {
    const double wide = value;
    if (std::fabs(wide) <= 0x1p-149 || !std::isfinite(wide)) {
      values.push_back(wide);
    } else {
      for (const double toward : {-2 * wide, wide, 2 * wide}) values.push_back(std::nextafter(wide, toward));
    }
  }
  CHECK(slow_histogram_of(values).equals(histogram_of(values)));
}

TEST_CASE("doubles beyond binary32's range go to the end octaves, and predictions stay exact") {
  std::vector<double> values{5e-324, -1e-310, 0x1p-1022, 0x1p-150, 0x1.fffp-150, 0x1p-149, 0x1.8p-149,
                             1.0,    65504.0, 0x1p127,   0x1p128,  -0x1p129,     1e300,    INFINITY};
  for (int exponent = -1074; exponent < 1024; exponent += 7) values.push_back(std::ldexp(-1.0, exponent));
  const ExponentHistogram histogram = histogram_of(values);
  CHECK(histogram.total() == values.size());
  CHECK(histogram.max_abs() == 0x1p1019);
  CHECK(histogram.log2_headroom() == 15 - 1019);
  CHECK(histogram.octave(-149).powers_of_two == 1);
  CHECK(histogram.octave(127).powers_of_two == 1);
  CHECK(histogram.octave(127).top + 1 == histogram.octave(127).total);
  CHECK(histogram.lowest_exponent() == -149);
  CHECK(histogram.highest_exponent() == 127);
  for (int log2_scale = -112; log2_scale <= 123; ++log2_scale) {
    CAPTURE(log2_scale);
    const sim::CastCounts counts = cast_samples::slow_count(values, log2_scale);
    REQUIRE(histogram.flushed_at_scale(log2_scale) == counts.flushed);
    REQUIRE(histogram.subnormal_at_scale(log2_scale) == counts.subnormal);
    REQUIRE(histogram.overflowed_at_scale(log2_scale) == counts.overflowed);
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
  constexpr int largest = std::numeric_limits<int>::max();
  CHECK(histogram.overflowed_at_scale(largest) == histogram.nonzero_finite());
  CHECK(histogram.flushed_at_scale(largest) == 0);
  CHECK(histogram.flushed_at_scale(-largest) == histogram.nonzero_finite());
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
    const int headroom = histogram_of(std::span(&value, 1)).log2_headroom().value();
    CAPTURE(value);
    REQUIRE(std::ldexp(std::fabs(static_cast<double>(value)), headroom) <= 65504.0);
    REQUIRE(std::ldexp(std::fabs(static_cast<double>(value)), headroom + 1) > 65504.0);
  }
}

TEST_CASE("a histogram made again from its counts is the same, and octaves beyond binary32 are refused") {
  const std::vector<float> values = cast_samples::values();
  const ExponentHistogram whole = histogram_of(values);
  std::vector<ExponentHistogram::Octave> octaves;
  for (int e = *whole.lowest_exponent(); e <= *whole.highest_exponent(); ++e)
    octaves.push_back(whole.octave(e));
  const ExponentHistogram again(
      *whole.lowest_exponent(), octaves,
      {.zero = whole.zero(), .infinite = whole.infinite(), .nan = whole.nan(), .max_abs = whole.max_abs()});
  CHECK(again == whole);
  CHECK_THROWS_AS(ExponentHistogram(-150, std::span(octaves).first(1), {}), std::invalid_argument);
  CHECK_THROWS_AS(ExponentHistogram(127, std::span(octaves).first(2), {}), std::invalid_argument);
}

TEST_CASE("a histogram times a power of two is that of the products") {
  for (const int log2 : {-140, -20, 0, 7, 130}) {
    std::vector<double> values, products;
    for (const float value : cast_samples::values()) {
      values.push_back(value);
      products.push_back(std::ldexp(double{value}, log2));
    }
    ExponentHistogram of_values, of_products;
    of_values.add(values);
    of_products.add(products);
    CAPTURE(log2);
    CHECK(scaled(of_values, log2) == of_products);
  }
}
