#include "sim/optimizers/sgd.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/sim/optimizers/tensors.h"

using test::follow;
using test::fused_half;
using test::pure_half;
using test::step;
using test::tensor_of;
using test::values_of;

TEST_CASE("sgd: momentum in exact arithmetic") {
  sim::Sgd optimizer({.learning_rate = 0.5, .momentum = 0.5});
  sim::Tensor weight = tensor_of({1});
  // v = 1, 1.5, -0.25; w = 1 - 0.5, 0.5 - 0.75, -0.25 + 0.125
  for (const auto& [gradient, expected] :
       {std::pair{1.0, 0.5}, std::pair{1.0, -0.25}, std::pair{-1.0, -0.125}}) {
    step(optimizer, weight, tensor_of({gradient}));
    CHECK(values_of(weight).front() == expected);
  }
}

TEST_CASE("sgd: Nesterov momentum and weight decay in exact arithmetic") {
  sim::Sgd optimizer({.learning_rate = 0.5, .momentum = 0.5, .nesterov = 1, .weight_decay = 0.5});
  sim::Tensor weight = tensor_of({1});
  // g = 1 + 0.5 w = 1.5, 0.9375; b = 1.5, 1.6875; g + 0.5 b = 2.25, 1.78125
  for (const double expected : {-0.125, -1.015625}) {
    step(optimizer, weight, tensor_of({1}));
    CHECK(values_of(weight).front() == expected);
  }
}

// All literals come from a separate program that rounds the double result of each single operation to
// binary32 (which is exact rounding for + - * / sqrt) and, where a tensor operation ends, to binary16.
TEST_CASE("sgd: every operation rounds once in the stated order") {
  sim::Sgd plain({.learning_rate = 0.1});
  CHECK(follow(plain, 0.6f) ==
        std::vector{0x1.6f9db2p-1, 0x1.547ae2p-1, 0x1.be76cap-2, 0x1.d2f1aep-3, 0x1.ccccdp-3});
  sim::Sgd decayed({.learning_rate = 0.1, .weight_decay = 0.3});
  CHECK(follow(decayed, 0.6f) ==
        std::vector{0x1.666668p-1, 0x1.408314p-1, 0x1.834c1ep-2, 0x1.455f72p-3, 0x1.3577b8p-3});
  sim::Sgd momentum({.learning_rate = 0.1, .momentum = 0.9});
  CHECK(follow(momentum, 0.6f) ==
        std::vector{0x1.6f9db2p-1, 0x1.8adabap-1, 0x1.2e1ef8p-1, 0x1.c0a8d4p-3, -0x1.e2a72p-4});
  sim::Sgd nesterov({.learning_rate = 0.1, .momentum = 0.9, .nesterov = 1, .weight_decay = 0.3});
  CHECK(follow(nesterov, 0.6f) ==
        std::vector{0x1.947ae2p-1, 0x1.735698p-1, 0x1.09d546p-2, -0x1.601086p-2, -0x1.5b891ep-1});
}

TEST_CASE("sgd: what is rounded to binary16 differs between the two ways of updating in it") {
  const sim::SgdOptions options{.learning_rate = 0.3, .momentum = 0.9, .nesterov = 1, .weight_decay = 0.3};
  sim::Sgd fused(options, fused_half);
  CHECK(follow(fused, 0.3f, fp16::binary16) ==
        std::vector{0x1.d7cp-1, 0x1.74p-1, -0x1.524p-1, -0x1.27p+1, -0x1.73p+1});
  sim::Sgd pure(options, pure_half);
  CHECK(follow(pure, 0.3f, fp16::binary16) ==
        std::vector{0x1.d78p-1, 0x1.73cp-1, -0x1.52p-1, -0x1.26cp+1, -0x1.72cp+1});
}

TEST_CASE("sgd: momentum is a row of the same rule") {
  sim::Momentum row;
  sim::Sgd same({.learning_rate = 0.05, .momentum = 0.9});
  CHECK(follow(row, 0.6f) == follow(same, 0.6f));
  CHECK(row.name() == "momentum");
  sim::MomentumOptions without;
  without.learning_rate = 0.1;
  without.momentum = 0;
  sim::Momentum row_without(without);
  sim::Sgd plain({.learning_rate = 0.1});
  CHECK(follow(row_without, 0.6f) == follow(plain, 0.6f));
}

TEST_CASE("sgd: the learning rate of a step is what begin_step is given") {
  sim::Sgd optimizer({.learning_rate = 0.5});
  sim::Tensor weight = tensor_of({1});
  optimizer.begin_step(0.25);
  optimizer.update(0, weight, tensor_of({1}));
  CHECK(values_of(weight).front() == 0.75);
  CHECK(optimizer.learning_rate() == 0.5);
  CHECK(optimizer.steps() == 1);
}

TEST_CASE("sgd: impossible options are refused") {
  for (const double bad : {0.0, -0.1, HUGE_VAL, std::nan("")})
    CHECK_THROWS_AS(sim::Sgd({.learning_rate = bad}), std::invalid_argument);
  for (const double bad : {-0.1, 1.0, std::nan("")}) {
    CHECK_THROWS_AS(sim::Sgd({.momentum = bad}), std::invalid_argument);
    sim::MomentumOptions options;
    options.momentum = bad;
    CHECK_THROWS_WITH_AS(sim::Momentum{options}, doctest::Contains("optimizer 'momentum': momentum = "),
                         std::invalid_argument);
  }
  CHECK_THROWS_AS(sim::Sgd({.weight_decay = -1}), std::invalid_argument);
  CHECK_THROWS_AS(sim::Sgd({.momentum = 0.5, .nesterov = 2}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      sim::Sgd({.nesterov = 1}),
      "optimizer 'sgd': nesterov = 1 is not allowed with momentum = 0; allowed: momentum in (0, 1)",
      std::invalid_argument);
}
