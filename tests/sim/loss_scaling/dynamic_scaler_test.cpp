#include "sim/loss_scaling/dynamic_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "tests/sim/loss_scaling/scaler_traces.h"

using scaler_traces::follow;
using sim::DynamicScaler;
using Trace = std::vector<double>;

TEST_CASE("dynamic follows GradScaler's trace: growth, one overflow, two in a row, one between clean steps") {
  DynamicScaler scaler({.init_scale = 1024, .growth_interval = 4});
  CHECK(follow(scaler, "....X....XX.X.......") ==
        Trace{10, 10, 10, 11, 10, 10, 10, 10, 11, 10, 9, 9, 8, 8, 8, 8, 9, 9, 9, 9});
}

TEST_CASE("dynamic follows GradScaler's trace: runs of overflows") {
  DynamicScaler scaler({.init_scale = 1024, .growth_interval = 4});
  CHECK(follow(scaler, "....XXXXX....XX.XX......") ==
        Trace{10, 10, 10, 11, 10, 9, 8, 7, 6, 6, 6, 6, 7, 6, 5, 5, 4, 3, 3, 3, 3, 4, 4, 4});
}

TEST_CASE("the defaults are GradScaler's") {
  CHECK(DynamicScaler().options() ==
        sim::NamedValues{
            {"init_scale", 65536}, {"growth_factor", 2}, {"backoff_factor", 0.5}, {"growth_interval", 2000}});
  CHECK(DynamicScaler().scale() == 65536);
}

TEST_CASE("growth beyond binary32 is refused, and the count of clean steps restarts all the same") {
  DynamicScaler scaler({.init_scale = 0x1p127F, .growth_interval = 2});
  CHECK(follow(scaler, "..") == Trace{127, 127});
  CHECK(scaler.state() == sim::NamedValues{{"scale", 0x1p127}, {"growth_tracker", 0}});
  CHECK(follow(scaler, ".X..") == Trace{127, 126, 126, 127});
}

TEST_CASE("without a floor the scale halves through 1 and the subnormals to zero and stays there") {
  DynamicScaler through_one({.init_scale = 2, .growth_interval = 4});
  CHECK(follow(through_one, "XXX") == Trace{0, -1, -2});
  DynamicScaler scaler({.init_scale = 0x1p-147F, .growth_interval = 2});
  CHECK(follow(scaler, "XX") == Trace{-148, -149});
  CHECK(follow(scaler, "X..") ==
        Trace{-INFINITY, -INFINITY, -INFINITY});  // 2^-150 is a tie and goes to even, 0
  CHECK(scaler.scale() == 0);
}

TEST_CASE("products are formed in double and rounded once to binary32") {
  // 3 * 1.1 is 0x1.a66666p+1 in double rounded to binary32; 3.0f * 1.1f would give 0x1.a66668p+1.
  DynamicScaler scaler({.init_scale = 3, .growth_factor = 1.1, .growth_interval = 1});
  scaler.update({});
  CHECK(scaler.scale() == 0x1.a66666p+1F);
}

TEST_CASE("impossible options are refused") {
  for (const float init_scale : {0.0f, -1.0f, INFINITY, NAN}) {
    CHECK_THROWS_AS(DynamicScaler({.init_scale = init_scale}), std::invalid_argument);
  }
  for (const double growth_factor : {1.0, 0.5, -2.0, HUGE_VAL, std::nan("")}) {
    CHECK_THROWS_AS(DynamicScaler({.growth_factor = growth_factor}), std::invalid_argument);
  }
  for (const double backoff_factor : {0.0, 1.0, 2.0, -0.5, std::nan("")}) {
    CHECK_THROWS_AS(DynamicScaler({.backoff_factor = backoff_factor}), std::invalid_argument);
  }
  for (const int growth_interval : {0, -1}) {
    CHECK_THROWS_AS(DynamicScaler({.growth_interval = growth_interval}), std::invalid_argument);
  }
  CHECK_THROWS_WITH(DynamicScaler({.growth_factor = 1}),
                    "scaler 'dynamic': growth_factor = 1 is not allowed; allowed: numbers in (1, inf)");
}

TEST_CASE("impossible state is refused and leaves the scaler as it was") {
  DynamicScaler scaler;
  CHECK_THROWS_AS(scaler.restore({{"scale", -1}, {"growth_tracker", 0}}), std::invalid_argument);
  CHECK_THROWS_AS(scaler.restore({{"scale", 1}, {"growth_tracker", -1}}), std::invalid_argument);
  CHECK_THROWS_AS(scaler.restore({{"scale", 1}}), std::invalid_argument);
  CHECK(scaler.scale() == 65536);
}
