#include "sim/statistics/cast_counts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <span>

#include "fp16/codec.h"
#include "tests/sim/statistics/cast_samples.h"

TEST_CASE("hand-made values at scale 1") {
  const std::vector<float> values{
      0.0f,         0x1p-26F, 0x1p-25F,   -0x1.000002p-25F, 0x1p-24F, 0x1.ff8p-15F, 0x1.ffbffep-15F,
      0x1.ffcp-15F, 1.0f,     65519.996f, -65520.0f,        INFINITY, NAN};
  CHECK(sim::count_casts(values, 0) == sim::CastCounts{.total = 13,
                                                       .zero_before = 1,
                                                       .flushed = 2,
                                                       .subnormal = 4,
                                                       .overflowed = 1,
                                                       .nonfinite_before = 2});
  CHECK(sim::count_casts(values, 0).normal() == 3);
}

TEST_CASE("counts equal casting value by value, at every scale that matters and far beyond") {
  const std::vector<float> values = cast_samples::values();
  for (int log2_scale = -180; log2_scale <= 180; ++log2_scale) {
    CAPTURE(log2_scale);
    REQUIRE(sim::count_casts(values, log2_scale) == cast_samples::slow_count(values, log2_scale));
  }
  CHECK(sim::count_casts(values, 100'000) == cast_samples::slow_count(values, 300));
  CHECK(sim::count_casts(values, -100'000) == cast_samples::slow_count(values, -300));
}

TEST_CASE("counts of parts add up") {
  const std::vector<float> values = cast_samples::values();
  const std::span<const float> all(values);
  sim::CastCounts sum = sim::count_casts(all.first(1001), 3);
  sum += sim::count_casts(all.subspan(1001), 3);
  CHECK(sum == sim::count_casts(all, 3));
  CHECK(sim::count_casts({}, 3) == sim::CastCounts{});
}

TEST_CASE("count_above counts what reaches the edge, infinities and NaN") {
  const std::vector<float> values{0.0f,    -8188.0f, 8187.9995f, 65504.0f,
                                  8188.0f, NAN,      -INFINITY,  std::nextafter(65504.0f, 0.0f)};
  CHECK(sim::count_above(values, 8188) == 6);
  CHECK(sim::count_above(values, 65504) == 3);
  CHECK(sim::count_above(values, 0) == 8);
  CHECK(sim::count_above(values, INFINITY) == 2);
  CHECK(sim::count_above(std::span<const float>{}, 0) == 0);
}

TEST_CASE("count_above equals comparing value by value, for spans of every length and alignment") {
  const std::vector<float> samples = cast_samples::values();
  const auto slow = [](std::span<const float> values, float edge) {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(values, [edge](float x) { return !(std::fabs(x) < edge); }));
  };
  for (const float edge : {0.0f, 0x1p-149F, 0x1p-24F, 1.0f, 4095.9f, 8188.0f, 65504.0f, 65519.0f,
                           std::numeric_limits<float>::max(), INFINITY}) {
    CAPTURE(edge);
    REQUIRE(sim::count_above(samples, edge) == slow(samples, edge));
    for (std::size_t size = 0; size < 300; ++size) {
      const std::span<const float> values = std::span(samples).subspan(4000 + size, size);
      REQUIRE(sim::count_above(values, edge) == slow(values, edge));
    }
  }
}

TEST_CASE("count_above on all halves equals the count on their floats, for edges that are no half too") {
  std::vector<std::uint16_t> codes;
  std::vector<float> widened;
  for (std::uint32_t code = 0; code < 65536; ++code) {
    codes.push_back(static_cast<std::uint16_t>(code));
    widened.push_back(fp16::half_bits_to_float(codes.back()));
  }
  for (const float edge : {0.0f, 0x1p-149F, 0x1p-24F, 0x1.8p-24F, 1.0f, 1.0001f, 4095.9f, 8188.0f, 65504.0f,
                           65504.004f, 65519.0f, 65536.0f, 1e30f, INFINITY}) {
    CAPTURE(edge);
    REQUIRE(sim::count_above(codes, edge) == sim::count_above(widened, edge));
    for (const std::size_t size : {0, 1, 7, 63, 64, 100}) {
      REQUIRE(sim::count_above(std::span(codes).subspan(31700, size), edge) ==
              sim::count_above(std::span(widened).subspan(31700, size), edge));
    }
  }
}
