#include "sim/tensor/extremes.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/sim/ops/evaluation.h"

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_of_no_sign = std::nanf(""), negative_nan = std::copysign(std::nanf(""), -1.0f);

}  // namespace

TEST_CASE("extremes: infinities have a magnitude, NaNs have none") {
  const auto magnitude = [](const std::vector<float>& values) { return sim::largest_magnitude(values); };
  CHECK(magnitude({}) == 0);
  CHECK(magnitude({-0.0f, nan_of_no_sign}) == 0);
  CHECK(magnitude({1, -3, 2}) == 3);
  CHECK(magnitude({0x1p-149f, negative_nan}) == 0x1p-149f);
  CHECK(magnitude({1, -inf, nan_of_no_sign}) == inf);
  CHECK(magnitude({-std::numeric_limits<float>::max(), negative_nan}) == std::numeric_limits<float>::max());
}

TEST_CASE("extremes: a tensor's largest finite magnitude, and whether all are") {
  const auto extremes = [](const std::vector<float>& values, fp16::Format format) {
    return sim::extremes_of(tensor_of({values.size()}, values, format));
  };
  for (const fp16::Format format : {fp16::binary16, fp16::binary32, fp16::binary64}) {
    INFO(fp16::name_of(format));
    CHECK(extremes({1, -3, 2}, format).max_abs == 3);
    CHECK_FALSE(extremes({1, -3, 2}, format).found_nonfinite);
    for (const float nonfinite : {inf, -inf, nan_of_no_sign, negative_nan}) {
      CHECK(extremes({1, nonfinite, -2}, format).max_abs == 2);
      CHECK(extremes({1, nonfinite, -2}, format).found_nonfinite);
    }
  }
}

TEST_CASE("extremes: every place counts, whatever the length") {
  for (std::size_t size = 1; size < 70; ++size) {
    for (std::size_t place = 0; place < size; ++place) {
      std::vector<float> values(size, 1);
      values[place] = -2;
      REQUIRE(sim::largest_magnitude(values) == 2);
      REQUIRE(sim::extremes_of(sim::Tensor::from({size}, values)).max_abs == 2);
    }
  }
}
