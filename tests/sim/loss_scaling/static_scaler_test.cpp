#include "sim/loss_scaling/static_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "sim/loss_scaling/no_scaling.h"
#include "tests/sim/loss_scaling/scaler_traces.h"

TEST_CASE("static skips non-finite steps and never moves") {
  sim::StaticScaler scaler;
  CHECK(scaler.scale() == 1024);
  CHECK(scaler_traces::follow(scaler, "....XX.X") == std::vector<double>(8, 10));
  sim::StaticScaler large({.scale = 0x1p24F});
  CHECK(scaler_traces::follow(large, ".X") == std::vector<double>(2, 24));
}

TEST_CASE("static applies non-finite steps when told to, as some frameworks do") {
  sim::StaticScaler scaler({.skip_nonfinite = false});
  CHECK(scaler.update({.found_nonfinite = true}) == sim::Decision::apply);
  CHECK(scaler.scale() == 1024);
}

TEST_CASE("static refuses a scale that is not positive and finite") {
  for (const float scale : {0.0f, -8.0f, INFINITY, NAN}) {
    CHECK_THROWS_AS(sim::StaticScaler({.scale = scale}), std::invalid_argument);
  }
  CHECK_THROWS_WITH(sim::StaticScaler({.scale = 0}),
                    "scaler 'static': scale = 0 is not allowed; allowed: numbers in (0, inf)");
}

TEST_CASE("none applies every step at scale 1, non-finite ones too") {
  sim::NoScaling scaler;
  for (const bool bad : {false, true, true, false}) {
    CHECK(scaler.update({.found_nonfinite = bad}) == sim::Decision::apply);
    CHECK(scaler.scale() == 1);
  }
}
