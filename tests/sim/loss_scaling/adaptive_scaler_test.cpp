#include "sim/loss_scaling/adaptive_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

using sim::AdaptiveScaler;
using sim::Decision;

namespace {

constexpr int all_zero = std::numeric_limits<int>::min();
constexpr int nan_at_any_scale = std::numeric_limits<int>::max();

// One step whose largest unscaled gradient is 2^exponent: scaled as FP16 would hold it, overflow included.
// Returns log2 of the next scale, or nothing when the decision was wrong.
std::optional<int> step(AdaptiveScaler& scaler, int exponent) {
  float largest = exponent == all_zero ? 0 : NAN;
  if (exponent != all_zero && exponent != nan_at_any_scale) largest = std::ldexp(scaler.scale(), exponent);
  if (largest >= 65520) largest = INFINITY;
  sim::ExponentHistogram exponents;
  exponents.add({{largest, largest / 4, 0.0f}});
  const bool bad = !std::isfinite(largest);
  const Decision decision = scaler.update({.found_nonfinite = bad, .exponents = &exponents});
  if ((decision == Decision::skip) != bad) return std::nullopt;
  return std::ilogb(scaler.scale());
}

std::vector<int> follow(AdaptiveScaler& scaler, const std::vector<int>& exponents) {
  std::vector<int> log2_scales;
  for (const int exponent : exponents) {
    const std::optional<int> log2_scale = step(scaler, exponent);
    REQUIRE(log2_scale.has_value());
    log2_scales.push_back(*log2_scale);
  }
  return log2_scales;
}

using Trace = std::vector<int>;

}  // namespace

// A largest gradient of 2^e has the limit 15 - e (2^15 <= 65504 < 2^16), so with headroom 2 the scale is
// 2^(13 - e).

TEST_CASE("adaptive learns the scale from the first step, without skipping") {
  AdaptiveScaler scaler;
  CHECK(scaler.scale() == 1);
  CHECK(follow(scaler, {-20}) == Trace{33});
}

TEST_CASE("adaptive: a larger gradient lowers the scale at once and holds it for the window") {
  AdaptiveScaler scaler({.window = 3});
  // limits: 35 | 35 33 | 35 33 35 | 33 35 35 | 35 35 35 ; minus 2
  CHECK(follow(scaler, {-20, -18, -20, -20, -20}) == Trace{33, 31, 31, 31, 33});
}

TEST_CASE("adaptive: a smaller gradient raises the scale once the window has forgotten the larger ones") {
  AdaptiveScaler scaler({.window = 2});
  // limits: 20 | 20 21 | 21 22 | 22 22
  CHECK(follow(scaler, {-5, -6, -7, -7}) == Trace{18, 18, 19, 20});
}

TEST_CASE(
    "adaptive: an overflow skips, lowers the scale by headroom + 1 octaves and holds it for the window") {
  AdaptiveScaler scaler({.window = 3});
  // 2^-16 at scale 2^33 is 2^17: overflow, limit 32. The scale 2^30 is then held by that limit for three
  // steps.
  CHECK(follow(scaler, {-20, -16, -20, -20, -20}) == Trace{33, 30, 30, 30, 33});
}

TEST_CASE("adaptive: a gradient that keeps overflowing is reached step by step") {
  AdaptiveScaler scaler({.window = 4});
  // 2^-8: overflows at 2^33, 2^30, 2^27, 2^24 (2^16); fits at 2^21, where it has the limit 23 and the fourth
  // overflow 23.
  CHECK(follow(scaler, {-20, -8, -8, -8, -8, -8}) == Trace{33, 30, 27, 24, 21, 21});
}

TEST_CASE("adaptive: a NaN that no scale cures leads to the floor, not to zero, and is forgotten later") {
  AdaptiveScaler scaler({.window = 2});
  const int nan = nan_at_any_scale;
  // each NaN leaves the limit log2 S - 1: 27 - 1 - 2 = 24, ...; at the floor the limit is -1, and -3 is
  // clamped to 0
  CHECK(follow(scaler, {-14, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan}) ==
        Trace{27, 24, 21, 18, 15, 12, 9, 6, 3, 0, 0, 0});
  CHECK(follow(scaler, {-14, -14}) == Trace{0, 27});
}

TEST_CASE(
    "adaptive: gradients that are all zero leave the scale alone while others are remembered, then raise "
    "it") {
  AdaptiveScaler scaler({.window = 2});
  CHECK(follow(scaler, {all_zero, all_zero, -4, all_zero, all_zero, all_zero}) ==
        Trace{1, 2, 17, 17, 18, 19});
}

TEST_CASE("adaptive: the scale stays within its limits") {
  AdaptiveScaler scaler({.window = 1, .min_log2_scale = 3, .max_log2_scale = 10});
  CHECK(scaler.scale() == 8);
  CHECK(follow(scaler, {-20, 20, 20, 20, all_zero}) == Trace{10, 7, 4, 3, 4});
  AdaptiveScaler below_one({.window = 1, .min_log2_scale = -20});
  CHECK(follow(below_one, {18, 18, 18}) ==
        Trace{-3, -5, -5});  // 2^18 overflows at 1; at 2^-3 it has the limit -3
}

TEST_CASE("adaptive: the headroom is the stated one") {
  for (const int headroom : {0, 1, 5, 15}) {
    AdaptiveScaler scaler({.headroom = headroom});
    CHECK(follow(scaler, {-20}) == Trace{35 - headroom});
  }
}

TEST_CASE("adaptive: with no headroom the largest value lands on 65504 at most, short of the overflow edge") {
  sim::ExponentHistogram exponents;
  exponents.add({{0x1.ffcp-10F}});  // 2^25 times it is 65504
  AdaptiveScaler scaler({.headroom = 0});
  scaler.update({.exponents = &exponents});
  CHECK(scaler.scale() == 0x1p25F);
  sim::ExponentHistogram beyond;
  beyond.add({{0x1.ffep-10F}});  // 2^25 times it is 65520
  AdaptiveScaler careful({.headroom = 0});
  careful.update({.exponents = &beyond});
  CHECK(careful.scale() == 0x1p24F);
}

TEST_CASE("adaptive: an infinite activation gradient that no weight gradient shows still lowers the scale") {
  AdaptiveScaler scaler;
  follow(scaler, {-20});
  sim::ExponentHistogram exponents;
  exponents.add({{INFINITY, 1.0f}});
  CHECK(scaler.update({.found_nonfinite = false, .exponents = &exponents}) == Decision::apply);
  CHECK(scaler.scale() == 0x1p30F);
}

TEST_CASE("adaptive: impossible options are refused") {
  CHECK_THROWS_AS(AdaptiveScaler({.headroom = -1}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.headroom = 16}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.window = 0}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.min_log2_scale = -101}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.max_log2_scale = 101}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      AdaptiveScaler({.min_log2_scale = 5, .max_log2_scale = 4}),
      "scaler 'adaptive': min_log2_scale = 5 is not allowed; allowed: at most max_log2_scale = 4",
      std::invalid_argument);
}

TEST_CASE("adaptive: impossible state is refused and leaves the scaler as it was") {
  AdaptiveScaler scaler({.window = 2});
  follow(scaler, {-10, -12});
  const sim::NamedValues before = scaler.state();
  CHECK(before == sim::NamedValues{{"log2_scale", 23}, {"limit_0", 25}, {"limit_1", 27}});
  for (const sim::NamedValues& state :
       std::vector<sim::NamedValues>{{},
                                     {{"log2_scale", 41}},
                                     {{"log2_scale", 1.5}},
                                     {{"limit_0", 1}},
                                     {{"log2_scale", 1}, {"limit_1", 1}},
                                     {{"log2_scale", 1}, {"limit_0", 1e6}},
                                     {{"log2_scale", 1}, {"limit_0", 1}, {"limit_1", 1}, {"limit_2", 1}}}) {
    CHECK_THROWS_AS(scaler.restore(state), std::invalid_argument);
    CHECK(scaler.state() == before);
  }
}
