#include "sim/optimizers/adamw_8bit.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/sim/optimizers/tensors.h"

using test::step;
using test::tensor_of;
using test::values_of;

namespace {

std::vector<double> random_values(std::size_t size, unsigned seed, double scale) {
  std::mt19937 random(seed);
  std::vector<double> values(size);
  for (double& value : values) value = static_cast<float>((static_cast<int>(random() % 2001) - 1000) * scale);
  return values;
}

std::vector<double> zeros(std::size_t size) {
  return std::vector<double>(size, 0.0);
}

}  // namespace

TEST_CASE("adamw8bit: 2.03 bytes of state per weight, from 4096 weights on") {
  const auto bytes = [](std::size_t size, const sim::UpdateArithmetic& arithmetic = {}) {
    sim::AdamW8bit optimizer({}, arithmetic);
    optimizer.allocate(0, size);
    return optimizer.state_bytes();
  };
  CHECK(bytes(4095) == 8 * 4095);
  CHECK(bytes(4095, {.state = fp16::binary16}) == 4 * 4095);
  CHECK(bytes(4096) == 2 * (4096 + 4 * 16));
  CHECK(bytes(4097) == 2 * (4097 + 4 * 17));
  CHECK(bytes(1 << 20) == doctest::Approx(2.03125 * (1 << 20)));
}

TEST_CASE("adamw8bit: with few weights it is adamw to the bit, and so is the first step with many") {
  for (const std::size_t size : {100, 5000}) {
    sim::AdamW8bit in_8_bits;
    sim::AdamW adamw;
    sim::Tensor weights = tensor_of(random_values(size, 1, 1e-3)), expected = weights;
    for (unsigned k = 0; k < (size == 100 ? 4 : 1); ++k) {
      const sim::Tensor gradients = tensor_of(random_values(size, 2 + k, 1e-3));
      step(in_8_bits, weights, gradients);
      step(adamw, expected, gradients);
    }
    CHECK(values_of(weights) == values_of(expected));
  }
}

// The map by hand: a block of 256 first moments 0.1 g whose largest is 0.1, so that g is what codes stand
// for, and second moments 0.001 g^2 with the largest 0.001. Everything but the storage is AdamW's second
// step.
TEST_CASE("adamw8bit: the second step starts from the stored numbers") {
  constexpr std::size_t size = 4096;
  const std::vector<double> gradients = [] {
    std::vector<double> values = random_values(size, 5, 1e-3);
    for (std::size_t block = 0; block < size; block += 256) values[block] = 1;
    return values;
  }();
  sim::AdamW8bitOptions options;
  options.weight_decay = 0;
  sim::AdamW8bit optimizer(options);
  sim::Tensor weights = tensor_of(zeros(size));
  step(optimizer, weights, tensor_of(gradients));
  const std::vector<double> before = values_of(weights);
  step(optimizer, weights, tensor_of(zeros(size)));
  const std::vector<double> after = values_of(weights);
  const auto& with_sign = sim::DynamicMap::with_sign();
  const auto& without = sim::DynamicMap::without_sign();
  int checked = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double g = gradients[i];
    const double m = 0.1 * with_sign.values()[with_sign.nearest(static_cast<float>(g))];
    const double v = 0.001 * without.values()[without.nearest(static_cast<float>(g * g))];
    const double moved =
        -0.001 / (1 - 0.81) * (0.9 * m) / (std::sqrt(0.999 * v / (1 - 0.999 * 0.999)) + 1e-8);
    // Gradients a rounding away from a midpoint may be stored as the neighbour; a few steps of 1/128 apart.
    if (std::fabs(after[i] - before[i] - moved) <= 1e-6 * std::fabs(moved) + 1e-9) ++checked;
  }
  CHECK(checked >= size * 99 / 100);
}

TEST_CASE("adamw8bit: a gradient that is not finite leaves its weight alone and clears its moments") {
  constexpr std::size_t size = 4096;
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    sim::AdamW8bit optimizer;
    sim::Tensor weights = tensor_of(random_values(size, 1, 1e-3));
    std::vector<double> gradients = random_values(size, 2, 1e-3);
    step(optimizer, weights, tensor_of(gradients));
    const std::vector<double> before = values_of(weights);
    gradients[300] = bad;
    step(optimizer, weights, tensor_of(gradients));
    const std::vector<double> after = values_of(weights);
    CHECK(after[300] == before[300]);
    for (std::size_t i = 0; i < size; ++i) {
      REQUIRE(std::isfinite(after[i]));
      if (i != 300 && gradients[i] != 0) REQUIRE(after[i] != before[i]);
    }
    const std::vector<sim::StateBlock> state = optimizer.state();
    CHECK(state[1].name == "first moment of parameter 0 codes");
    CHECK(state[1].bytes[300] == std::byte{127});
    CHECK(state[3].name == "second moment of parameter 0 codes");
    CHECK(state[3].bytes[300] == std::byte{0});
    step(optimizer, weights, tensor_of(random_values(size, 3, 1e-3)));
    for (const double weight : values_of(weights)) REQUIRE(std::isfinite(weight));
  }
}

TEST_CASE("adamw8bit: a second moment that overflows makes its block NaN at the next step, and no other") {
  constexpr std::size_t size = 4096;
  sim::AdamW8bit optimizer;
  sim::Tensor weights = tensor_of(random_values(size, 1, 1e-3));
  std::vector<double> gradients = random_values(size, 2, 1e-3);
  gradients[300] = 1e30;
  step(optimizer, weights, tensor_of(gradients));
  step(optimizer, weights, tensor_of(random_values(size, 3, 1e-3)));
  const std::vector<double> after = values_of(weights);
  for (std::size_t i = 0; i < size; ++i) REQUIRE(std::isnan(after[i]) == (i / 256 == 1));
}
