#include "sim/loss_scaling/delayed_scaling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "fp16/formats.h"

using fp16::e4m3;
using fp16::e5m2;
using sim::DelayedScaling;
using sim::DelayedScalingOptions;
using Trace = std::vector<float>;

namespace {

// The scale of each step's cast, and that of one more step.
Trace follow(DelayedScaling& scaler, const std::vector<float>& maxima, const fp16::Format& format = e4m3) {
  Trace scales;
  for (const float max_abs : maxima) {
    scales.push_back(scaler.scale("x", format, max_abs));
    scaler.end_step();
  }
  scales.push_back(scaler.scale("x", format, 0));
  return scales;
}

Trace follow(const DelayedScalingOptions& options, const std::vector<float>& maxima) {
  DelayedScaling scaler(options);
  return follow(scaler, maxima);
}

}  // namespace

TEST_CASE("delayed: the scale comes from the steps before, the first is 1") {
  CHECK(follow({.amax_history_length = 3}, {4, 2, 1, 1, 1}) == Trace{1, 112, 112, 112, 224, 448});
  CHECK(follow({.amax_history_length = 1}, {4, 2, 1}) == Trace{1, 112, 224, 448});
  CHECK(follow({.amax_history_length = 2}, {1, 4, 2, 1}) == Trace{1, 448, 112, 112, 224});
  CHECK(follow({}, {4, 2, 1, 7, 1, 1}) == Trace{1, 112, 112, 112, 64, 64, 64});
}

TEST_CASE("delayed: most recent looks at one step only") {
  CHECK(follow({.use_most_recent = true}, {4, 2, 1, 7}) == Trace{1, 112, 224, 448, 64});
}

TEST_CASE(
    "delayed: the largest number is the format's, lowered by the margin, and the quotient is binary32") {
  DelayedScaling gradients;
  CHECK(follow(gradients, {7}, e5m2) == Trace{1, 8192});
  DelayedScaling fnuz;
  CHECK(follow(fnuz, {7.5F}, fp16::e4m3_fnuz) == Trace{1, 32});  // 240
  CHECK(follow({.margin = 2}, {4}) == Trace{1, 28});
  CHECK(follow({.margin = -1}, {4}) == Trace{1, 224});
  CHECK(follow({}, {3}) == Trace{1, 0x1.2aaaaap+7F});  // 149.33.., rounded down from ..aaaaaaa
  CHECK(follow({}, {0x1p-140F}) == Trace{1, std::numeric_limits<float>::max()});
}

TEST_CASE("delayed: the largest of several casts in a step counts, tensors apart") {
  DelayedScaling scaler;
  CHECK(scaler.scale("x", e4m3, 1) == 1);
  CHECK(scaler.scale("x", e4m3, 14) == 1);
  CHECK(scaler.scale("x", e4m3, 2) == 1);
  CHECK(scaler.scale("gradient", e5m2, 2) == 1);
  scaler.end_step();
  CHECK(scaler.scale("x", e4m3, 1) == 32);
  CHECK(scaler.scale("gradient", e5m2, 1) == 28672);
}

TEST_CASE("delayed: zeros keep the scale, whether they enter the history is the path's affair") {
  CHECK(follow({.amax_history_length = 2}, {4, 0, 1, 1}) == Trace{1, 112, 112, 112, 448});
  CHECK(follow({.amax_history_length = 2, .rolls_zero_amax = true}, {4, 0, 1, 1}) ==
        Trace{1, 112, 112, 448, 448});
  CHECK(follow({.amax_history_length = 2, .rolls_zero_amax = true}, {4, 0, 0, 0}) ==
        Trace{1, 112, 112, 112, 112});
  CHECK(follow({.use_most_recent = true, .rolls_zero_amax = true}, {0, 4, 0}) == Trace{1, 1, 112, 112});
}

TEST_CASE("delayed: an infinity holds the scale for as long as it is remembered, a NaN is not seen") {
  CHECK(follow({.amax_history_length = 3}, {4, INFINITY, 1, 1, 1}) == Trace{1, 112, 112, 112, 112, 448});
  CHECK(follow({.use_most_recent = true}, {4, INFINITY, 1}) == Trace{1, 112, 112, 448});
  CHECK(follow({.amax_history_length = 1}, {4, NAN, 1}) == Trace{1, 112, 112, 448});
}

TEST_CASE("delayed: the defaults are the original's") {
  CHECK(DelayedScaling().options() ==
        names::NamedValues{
            {"margin", 0}, {"amax_history_length", 1024}, {"use_most_recent", 0}, {"rolls_zero_amax", 0}});
  // 1023 steps later the first is still remembered, 1024 later it is not.
  std::vector<float> maxima(1025, 1);
  maxima[0] = 4;
  const Trace scales = follow({}, maxima);
  CHECK(scales[1023] == 112);
  CHECK(scales[1024] == 112);
  CHECK(scales[1025] == 448);
}

TEST_CASE("delayed: a restored state continues as the original, in the middle of a step too") {
  const DelayedScalingOptions options{.amax_history_length = 5, .rolls_zero_amax = true};
  DelayedScaling original(options), resumed(options);
  std::mt19937 random(1);
  const auto max_abs = [&random] {
    const unsigned kind = random() % 8;
    return kind == 0 ? 0.0F : kind == 1 ? INFINITY : std::ldexp(1.0F, static_cast<int>(random() % 30) - 15);
  };
  for (int i = 0; i < 12; ++i) {
    original.scale("layer/x", e4m3, max_abs());
    if (i % 2 == 0) original.scale("y", e5m2, max_abs());
    if (i != 11) original.end_step();
  }
  resumed.restore(original.state());
  for (int i = 0; i < 30; ++i) {
    REQUIRE(resumed.state() == original.state());
    original.end_step();
    resumed.end_step();
    const float next = max_abs();
    REQUIRE(original.scale("layer/x", e4m3, next) == resumed.scale("layer/x", e4m3, next));
  }
}

TEST_CASE("delayed: impossible options and states are refused") {
  CHECK_THROWS_AS(DelayedScaling({.amax_history_length = 0}), std::invalid_argument);
  CHECK_THROWS_WITH(DelayedScaling({.margin = 25}),
                    "scaler 'delayed': margin = 25 is not allowed; allowed: whole numbers in [-24, 24]");

  DelayedScaling scaler({.amax_history_length = 2});
  follow(scaler, {4, 2});
  const names::NamedValues before = scaler.state();
  CHECK(before ==
        names::NamedValues{{"x/scale", 112}, {"x/format_max", 448}, {"x/amax", 0}, {"x/history_0", 2}});
  using Values = names::NamedValues;
  for (const Values& state : std::vector<Values>{
           {{"scale", 1}},
           {{"x/scale", 1}, {"x/format_max", 448}},
           {{"x/scale", 0}, {"x/format_max", 448}, {"x/amax", 0}},
           {{"x/scale", 1}, {"x/format_max", 448}, {"x/amax", -1}},
           {{"x/scale", 1}, {"x/format_max", 448}, {"x/amax", 0}, {"x/history_1", 1}},
           {{"x/scale", 1}, {"x/format_max", 448}, {"x/amax", 0}, {"x/history_0", -1}},
           {{"x/scale", 1}, {"x/format_max", 448}, {"x/amax", 0}, {"x/other", 1}},
           {{"x/scale", 1}, {"x/format_max", 448}, {"x/amax", 0}, {"x/history_0", 1}, {"x/history_1", 1}}}) {
    CHECK_THROWS_AS(scaler.restore(state), std::invalid_argument);
    CHECK(scaler.state() == before);
  }
}
