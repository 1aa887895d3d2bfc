#include "sim/loss_scaling/current_scaling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "fp16/formats.h"

using fp16::e4m3;
using fp16::e5m2;
using sim::CurrentScaling;

namespace {

float scale(const sim::CurrentScalingOptions& options, float max_abs, const fp16::Format& format = e4m3) {
  return CurrentScaling(options).scale("x", format, max_abs);
}

}  // namespace

TEST_CASE("current: the largest value becomes the largest number of the format") {
  CHECK(scale({}, 7) == 64);
  CHECK(scale({}, 7, e5m2) == 8192);
  CHECK(scale({}, 3, fp16::e2m1) == 2);
  CHECK(scale({}, 3) == 0x1.2aaaaap+7F);
  CHECK(scale({}, std::numeric_limits<float>::max()) == 448 / std::numeric_limits<float>::max());
}

TEST_CASE("current: 1 for zeros, infinities and NaNs, the largest float where the quotient is beyond it") {
  CHECK(scale({}, 0) == 1);
  CHECK(scale({}, INFINITY) == 1);
  CHECK(scale({}, NAN) == 1);
  CHECK(scale({.amax_epsilon = 1}, NAN) == 1);
  CHECK(scale({}, 0x1p-140F) == std::numeric_limits<float>::max());
}

TEST_CASE("current: epsilon is the least amax, also of zeros") {
  CHECK(scale({.amax_epsilon = 0.5}, 0) == 896);
  CHECK(scale({.amax_epsilon = 0.5}, 0.25) == 896);
  CHECK(scale({.amax_epsilon = 0.5}, 0.5) == 896);
  CHECK(scale({.amax_epsilon = 0.5}, 1) == 448);
}

TEST_CASE("current: powers of two are rounded down") {
  CHECK(scale({.power_of_two = true}, 7) == 64);
  CHECK(scale({.power_of_two = true}, 1) == 256);
  CHECK(scale({.power_of_two = true}, 448) == 1);
  CHECK(scale({.power_of_two = true}, 449) == 0.5);
  CHECK(scale({.power_of_two = true}, 0x1p-140F) == 0x1p127F);
  CHECK(scale({.power_of_two = true}, 0) == 1);
}

TEST_CASE("current: no memory, and impossible options and states are refused") {
  CurrentScaling scaler;
  CHECK(scaler.scale("x", e4m3, 7) == 64);
  scaler.end_step();
  CHECK(scaler.scale("x", e4m3, 1) == 448);
  CHECK(scaler.state().empty());
  scaler.restore({});
  CHECK_THROWS_WITH_AS(scaler.restore({{"x/scale", 1}}),
                       "scaler 'current': saved state has an unknown entry 'x/scale'", std::invalid_argument);
  CHECK(scaler.options() == names::NamedValues{{"amax_epsilon", 0}, {"power_of_two", 0}});
  CHECK_THROWS_WITH_AS(CurrentScaling({.amax_epsilon = -1}),
                       "scaler 'current': amax_epsilon = -1 is not allowed; allowed: numbers in [0, inf)",
                       std::invalid_argument);
}
