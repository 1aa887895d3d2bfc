#include "sim/statistics/twin_comparison.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using sim::Tensor;

TEST_CASE("twin comparison: every count and sum on a tensor small enough to work out by hand") {
  const float inf = std::numeric_limits<float>::infinity();
  // S = 4:              exact     flushed     subnormal  overflow  zero in both  NaN where the twin is zero
  const std::vector<float> twin{0.5f, 0x1p-28f, 0x1p-20f, 30000.0f, 0.0f, 0.0f};
  const std::vector<float> run{2.0f, 0.0f, 0x1p-18f, inf, 0.0f, std::numeric_limits<float>::quiet_NaN()};
  fp16::RoundingCounts rounding;
  rounding.flushed = 1;
  const sim::TwinComparison c = sim::compare(Tensor::from({6}, run), 4, Tensor::from({6}, twin), rounding);
  CHECK(c.total == 6);
  CHECK(c.nonzero == 4);
  CHECK(c.flushed == 1);
  CHECK(c.flushed_at_cast == 1);
  CHECK(c.subnormal == 1);
  CHECK(c.overflow == 1);
  CHECK(c.nonfinite == 2);
  CHECK(c.fraction_flushed() == 0.25);
  CHECK(c.twin_max_abs == 30000);
  CHECK(c.octaves_alive() == doctest::Approx(std::log2(30000.0) + 25));
  CHECK(!std::isfinite(c.relative_error()));
}

TEST_CASE("twin comparison: norms add up over tensors") {
  const auto compare = [](std::vector<float> run, std::vector<float> twin) {
    return sim::compare(Tensor::from({run.size()}, run), 2, Tensor::from({twin.size()}, twin), {});
  };
  sim::TwinComparison total = compare({6, 0}, {3, 4});
  CHECK(total.relative_error() == doctest::Approx(4.0 / 5));
  CHECK(total.norm_share_flushed() == doctest::Approx(4.0 / 5));
  CHECK(total.cosine() == doctest::Approx(3.0 / 5));
  total += compare({0, 24}, {0, 12});
  CHECK(total.relative_error() == doctest::Approx(4.0 / 13));
  CHECK(total.nonzero == 3);
  const sim::TwinComparison nothing = compare({0}, {0});
  CHECK(nothing.relative_error() == 0);
  CHECK(nothing.cosine() == 0);
  CHECK(nothing.octaves_alive() == -std::numeric_limits<double>::infinity());
}
