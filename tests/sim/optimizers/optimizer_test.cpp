#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "sim/optimizers/adam.h"
#include "sim/optimizers/momentum.h"
#include "sim/optimizers/sgd.h"

namespace {

constexpr std::array gradients{-1.18f, 0.53f, 2.29f, 2.08f, 0.03f};

// The weight after each step from 0.6 under the gradients above.
std::vector<float> follow(sim::Optimizer& optimizer) {
  float weight = 0.6f;
  std::vector<float> weights;
  for (const float gradient : gradients) {
    optimizer.begin_step();
    optimizer.update(0, {&weight, 1}, {&gradient, 1});
    weights.push_back(weight);
  }
  return weights;
}

constexpr double unit_roundoff = 0x1p-24;

}  // namespace

TEST_CASE("momentum in exact arithmetic") {
  sim::Momentum optimizer({.learning_rate = 0.5, .momentum = 0.5});
  float weight = 1;
  // v = 1, 1.5, -0.25; w = 1 - 0.5, 0.5 - 0.75, -0.25 + 0.125
  const std::array<std::array<float, 2>, 3> steps{{{1, 0.5f}, {1, -0.25f}, {-1, -0.125f}}};
  for (const auto& [gradient, expected] : steps) {
    optimizer.begin_step();
    optimizer.update(0, {&weight, 1}, {&gradient, 1});
    CHECK(weight == expected);
  }
}

TEST_CASE("adam's first step is learning_rate / (1 + epsilon / |g|) against the gradient's sign") {
  // beta1 = beta2 = 0: m = g, v = g^2, no correction, so every step is g / (|g| + epsilon) times the learning
  // rate.
  sim::Adam optimizer({.learning_rate = 0.5, .beta1 = 0, .beta2 = 0, .epsilon = 1});
  float weight = 1;
  for (const auto& [gradient, expected] : {std::pair{1.0f, 0.75f}, std::pair{-3.0f, 1.125f}}) {
    optimizer.begin_step();
    optimizer.update(0, {&weight, 1}, {&gradient, 1});
    CHECK(weight == expected);
  }
}

// Literals from a separate program that rounds the double result of each single operation to binary32, which
// is exact rounding for + - * / sqrt. The gradients and adam's options are such that each other order of its
// formula (beta2-weighted square, lerp, place of either bias correction) would show.
TEST_CASE("every operation rounds once in the stated order") {
  sim::Sgd sgd({.learning_rate = 0.1});
  CHECK(follow(sgd) ==
        std::vector{0x1.6f9db2p-1F, 0x1.547ae2p-1F, 0x1.be76cap-2F, 0x1.d2f1aep-3F, 0x1.ccccdp-3F});
  sim::Momentum momentum({.learning_rate = 0.1, .momentum = 0.9});
  CHECK(follow(momentum) ==
        std::vector{0x1.6f9db2p-1F, 0x1.8adabap-1F, 0x1.2e1ef8p-1F, 0x1.c0a8d4p-3F, -0x1.e2a72p-4F});
  sim::Adam adam({.learning_rate = 1, .beta1 = 0.9, .beta2 = 0.7, .epsilon = 1e-8});
  CHECK(follow(adam) ==
        std::vector{0x1.99999ap+0F, 0x1.ed01bp+0F, 0x1.86aecap+0F, 0x1.e1cff6p-1F, 0x1.884d08p-2F});
}

TEST_CASE("momentum without momentum is sgd") {
  sim::Momentum momentum({.learning_rate = 0.1, .momentum = 0});
  sim::Sgd sgd({.learning_rate = 0.1});
  CHECK(follow(momentum) == follow(sgd));
}

// u = 2^-24, 1 <= |g| <= 2, T = 20 steps. Each step brings into m at most |g - m| (2u + u) 0.1 + |m| u
// <= 3.2u, which then decays by 0.9, so m is off by at most 32u. v is a sum of positive terms, off by at most
// 5u T relative, and after correction v lies in [1, 4]. So m / (sqrt(v) / c + epsilon) is off by at most 32u
// + |m| (5u T / 2 + 4u) <= 140u; its factor learning_rate / (1 - 0.9^t) is at most 0.1, and that product (<=
// 0.2) brings 2u of its own. With |w| u <= 2u for the new weight that makes (14 + 0.4 + 2) u a step, 328u in
// all.
TEST_CASE("adam agrees with the paper's formula in double") {
  sim::Adam adam({.learning_rate = 0.01});
  float weight = 1.5f;
  double w = weight, m = 0, v = 0;
  for (int t = 1; t <= 20; ++t) {
    const float gradient = (t % 3 == 0 ? -1.0f : 1.0f) * (1 + static_cast<float>(t) / 20);
    adam.begin_step();
    adam.update(0, {&weight, 1}, {&gradient, 1});
    m = 0.9 * m + 0.1 * gradient;
    v = 0.999 * v + 0.001 * gradient * gradient;
    w -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    CAPTURE(t);
    CHECK(std::fabs(weight - w) <= 328 * unit_roundoff);
  }
  CHECK(std::fabs(w - 1.5) > 0.05);  // the bound is far below what the steps moved
}

TEST_CASE("state is what each optimizer says it keeps") {
  CHECK(sim::Sgd().state_bytes_per_weight() == 0);
  CHECK(sim::Momentum().state_bytes_per_weight() == 4);
  CHECK(sim::Adam().state_bytes_per_weight() == 8);
}

TEST_CASE("impossible options are refused") {
  for (const double learning_rate : {0.0, -0.1, HUGE_VAL, std::nan("")}) {
    CHECK_THROWS_AS(sim::Sgd({.learning_rate = learning_rate}), std::invalid_argument);
    CHECK_THROWS_AS(sim::Momentum({.learning_rate = learning_rate}), std::invalid_argument);
    CHECK_THROWS_AS(sim::Adam({.learning_rate = learning_rate}), std::invalid_argument);
  }
  for (const double decay : {-0.1, 1.0, 1.5, std::nan("")}) {
    CHECK_THROWS_AS(sim::Momentum({.momentum = decay}), std::invalid_argument);
    CHECK_THROWS_AS(sim::Adam({.beta1 = decay}), std::invalid_argument);
    CHECK_THROWS_AS(sim::Adam({.beta2 = decay}), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(sim::Adam({.epsilon = -1e-8}),
                       "optimizer 'adam': epsilon = -1e-08 is not allowed; allowed: numbers in [0, inf)",
                       std::invalid_argument);
  CHECK_NOTHROW(sim::Adam({.beta1 = 0, .beta2 = 0, .epsilon = 0}));
}
