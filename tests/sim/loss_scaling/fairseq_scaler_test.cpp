#include "sim/loss_scaling/fairseq_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "tests/sim/loss_scaling/scaler_traces.h"

using scaler_traces::follow;
using scaler_traces::Trace;
using sim::FairseqScaler;

TEST_CASE("fairseq tolerates overflows until their share of the steps since S last moved is reached") {
  FairseqScaler scaler({.init_scale = 1024, .growth_interval = 4, .tolerance = 0.5});
  // shares: 1/3, 2/5, 3/6: S moves; 1/1: S moves; growth four steps after the last overflow; 1/1; 1/2
  CHECK(follow(scaler, "..X.XXX....X.X") == Trace{10, 10, 10, 10, 10, 9, 8, 8, 8, 8, 9, 8, 8, 7});
  FairseqScaler strict({.init_scale = 1024, .growth_interval = 4, .tolerance = 1});
  CHECK(follow(strict, "X.X.XXXX") == Trace{9, 9, 9, 9, 9, 9, 9, 9});
}

TEST_CASE("a tolerated overflow keeps fairseq's scale from growing") {
  FairseqScaler scaler({.init_scale = 1024, .growth_interval = 4, .tolerance = 0.5});
  CHECK(follow(scaler, "...X...X...X....") ==
        Trace{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 11});
}

TEST_CASE("fairseq's threshold is a floor that ends no run, and raises a scale below it") {
  FairseqScaler scaler({.init_scale = 2048, .threshold = 512});
  CHECK(follow(scaler, "XXXX") == Trace{10, 9, 9, 9});
  FairseqScaler below({.init_scale = 4, .threshold = 512});
  CHECK(follow(below, "X") == Trace{9});
}

TEST_CASE("fairseq ends the run when S would fall to its minimum, and gives S its old value") {
  FairseqScaler scaler({.init_scale = 8, .min_scale = 1});
  CHECK(follow(scaler, "XX!") == Trace{2, 1, 1});
  CHECK(scaler.abort_reason() ==
        "scaler 'fairseq': the scale would fall to 1; allowed: more than min_scale = 1");
  CHECK(follow(scaler, "!!") == Trace{1, 1});
  FairseqScaler by_default({.init_scale = 0x1p-12});
  CHECK(follow(by_default, "X!") == Trace{-13, -13});  // 2^-14 < 1e-4 < 2^-13
  FairseqScaler without({.init_scale = 8, .min_scale = 0});
  CHECK(follow(without, "XXXXX") == Trace{2, 1, 0, -1, -2});
}

TEST_CASE("fairseq's scale has no ceiling: beyond binary32 it is infinite until the next overflow") {
  FairseqScaler scaler({.init_scale = 0x1p127, .growth_interval = 1});
  CHECK(follow(scaler, "..XX") == Trace{HUGE_VAL, HUGE_VAL, HUGE_VAL, 127});
}

TEST_CASE("fairseq's defaults are those of its command line, and impossible ones are refused") {
  CHECK(FairseqScaler().options() == names::NamedValues{{"init_scale", 128},
                                                        {"growth_factor", 2},
                                                        {"growth_interval", 16384},
                                                        {"tolerance", 0},
                                                        {"threshold", 0},
                                                        {"min_scale", 1e-4}});
  CHECK_THROWS_AS(FairseqScaler({.tolerance = -0.1}), std::invalid_argument);
  CHECK_THROWS_AS(FairseqScaler({.tolerance = 1.1}), std::invalid_argument);
  CHECK_THROWS_AS(FairseqScaler({.growth_factor = 1}), std::invalid_argument);
  CHECK_THROWS_AS(FairseqScaler({.growth_interval = 0}), std::invalid_argument);
  CHECK_THROWS_AS(FairseqScaler({.threshold = -1}), std::invalid_argument);
  CHECK_THROWS_AS(FairseqScaler({.init_scale = 0x1p128}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(FairseqScaler({.init_scale = 1, .min_scale = 2}),
                       "scaler 'fairseq': init_scale = 1 is not allowed; allowed: at least min_scale = 2",
                       std::invalid_argument);
}
