#include "sim/loss_scaling/log_max_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

using sim::Decision;
using sim::LogMaxScaler;

namespace {

constexpr float overflow = std::numeric_limits<float>::infinity();

// One step whose largest unscaled gradient is given.
float step(LogMaxScaler& scaler, float largest) {
  const bool bad = !std::isfinite(largest);
  const Decision decision =
      scaler.update({.found_nonfinite = bad, .max_abs = bad ? 1 : largest * scaler.scale()});
  REQUIRE(decision == (bad ? Decision::skip : Decision::apply));
  return scaler.scale();
}

// The expected numbers are the formulas at 40 decimal digits.
void check(LogMaxScaler scaler, const std::vector<float>& largest, const std::vector<double>& expected) {
  REQUIRE(largest.size() == expected.size());
  for (std::size_t i = 0; i < largest.size(); ++i) {
    CAPTURE(i);
    const double scale = step(scaler, largest[i]);
    CHECK(std::fabs(scale / expected[i] - 1) < 1e-6);
  }
}

}  // namespace

TEST_CASE("LogMax follows mean and spread of the logarithms, with and without its quirk") {
  const std::vector<float> largest{4, 16, 8, overflow, 8};
  const std::vector<double> expected{16384, 958.7263412205917, 1422.6093125823013, 1, 1};
  check(LogMaxScaler(), largest, expected);
  check(LogMaxScaler({.bad_step_enters_as_magnitude = false}), largest, expected);
  check(LogMaxScaler(), {0.25f, 1, 0.5f, 2, 3, 4, 5},
        {16384, 15339.621459529468, 16384, 8394.481733144057, 4220.404036997676, 2569.2776330082384,
         1763.256354308575});
}

TEST_CASE("LogMax's quirk puts 65536 among the logarithms, where 16 belongs") {
  // With no allowance for the spread S = 2^(16 - mean): the mean after the overflow is 6.3016 or 16634.1.
  const std::vector<float> largest{4, 16, 8, overflow};
  check(LogMaxScaler({.overflow_std_dev = 0, .bad_step_enters_as_magnitude = false}), largest,
        {16384, 8163.515658032230, 8173.094945908113, 830.7982719809148});
  LogMaxScaler quirky({.overflow_std_dev = 0});
  for (const float value : largest) step(quirky, value);
  const names::NamedValues state = quirky.state();
  const double mean = state[1].second / (1 - state[4].second);
  CHECK(state[1].first == "fast_mean");
  CHECK(state[4].first == "beta1_power");
  CHECK(mean == doctest::Approx(16634.059392970103).epsilon(1e-9));
}

TEST_CASE("one overflow pins LogMax at its floor for thousands of steps under the quirk, else for ten") {
  LogMaxScaler quirky, sane({.bad_step_enters_as_magnitude = false});
  for (LogMaxScaler* scaler : {&quirky, &sane}) step(*scaler, overflow);
  for (int i = 0; i < 9; ++i) CHECK(step(sane, 8) == 1);
  CHECK(step(sane, 8) > 1);
  for (int i = 0; i < 12'393; ++i) REQUIRE(step(quirky, 8) == 1);
  CHECK(step(quirky, 8) > 1);
}

TEST_CASE("LogMax: gradients that are all zero leave everything as it was") {
  LogMaxScaler scaler;
  step(scaler, 8);
  const names::NamedValues before = scaler.state();
  CHECK(step(scaler, 0) == scaler.scale());
  CHECK(scaler.state() == before);
}

TEST_CASE("LogMax stays within its limits") {
  LogMaxScaler scaler({.min_scale = 2, .max_scale = 64});
  CHECK(scaler.scale() == 2);
  CHECK(step(scaler, 0x1p-100f) == 64);
  CHECK(step(scaler, 0x1p30f) == 2);
}

TEST_CASE("LogMax's defaults are the original's, and impossible ones are refused") {
  CHECK(LogMaxScaler().options() == names::NamedValues{{"min_scale", 1},
                                                       {"max_scale", 16384},
                                                       {"log_max", 16},
                                                       {"beta1", 0.99},
                                                       {"beta2", 0.999},
                                                       {"overflow_std_dev", 3.09},
                                                       {"bad_step_enters_as_magnitude", 1}});
  CHECK_THROWS_AS(LogMaxScaler({.beta1 = 1}), std::invalid_argument);
  CHECK_THROWS_AS(LogMaxScaler({.beta2 = -0.1}), std::invalid_argument);
  CHECK_THROWS_AS(LogMaxScaler({.overflow_std_dev = -1}), std::invalid_argument);
  CHECK_THROWS_AS(LogMaxScaler({.min_scale = 0}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      LogMaxScaler({.min_scale = 8, .max_scale = 4}),
      "scaler 'openseq2seq_log_max': min_scale = 8 is not allowed; allowed: at most max_scale = 4",
      std::invalid_argument);
}
