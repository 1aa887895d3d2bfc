#include <doctest/doctest.h>

#include <vector>

#include "experiments/underflow_sweep/findings.h"

using sim::Tensor;

TEST_CASE("underflow_sweep: lost upstream is what is zero though its own rounding would have kept it") {
  Tensor run({6}, fp16::binary16);
  sim::store({&run}, 0, std::vector<float>{0, 0, 0, 0, 0x1p-24f, 0});
  const Tensor twin =
      Tensor::from({6}, std::vector<float>{0, 0x1p-25f, 0x1.000002p-25f, -1, 0x1p-24f, 0x1p-27f});
  using experiments::underflow_sweep::count_lost_upstream;
  CHECK(count_lost_upstream(run, twin, 1) == 2);  // just above the tie, and -1
  CHECK(count_lost_upstream(run, twin, 2) == 3);  // 2^-24 too
  CHECK(count_lost_upstream(run, twin, 8) == 4);  // and 2^-24 again
}

TEST_CASE("underflow_sweep: shares leave rounding noise out") {
  experiments::underflow_sweep::ScaleResult result;
  result.sites = {{.nonzero = 100}, {.nonzero = 300}, {.nonzero = 1000, .is_rounding_noise = true}};
  result.lost_upstream = {10, 30, 500};
  CHECK(result.fraction_lost_upstream(1) == 0.1);
  CHECK(result.fraction_lost_upstream() == 0.1);
}
