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
