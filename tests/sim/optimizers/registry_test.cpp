#include "sim/optimizers/registry.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

namespace {

std::vector<float> random_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000 - 1;
  return values;
}

}  // namespace

TEST_CASE("every optimizer is listed under its own name, makes it and remakes it from its options") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto optimizer = sim::make_optimizer(row.name);
    CHECK(optimizer->name() == row.name);
    CHECK_FALSE(row.description.empty());
    sim::GivenOptions reported;
    for (const auto& [name, value] : optimizer->options()) reported[name] = value;
    CHECK(reported.contains("learning_rate"));
    CHECK(sim::make_optimizer(row.name, reported)->options() == optimizer->options());
    CHECK_THROWS_AS(sim::make_optimizer(row.name, {{"no_such_option", 1}}), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(
      sim::make_optimizer("adm"),
      doctest::Contains("unknown optimizer 'adm'; did you mean 'adam'? allowed: sgd, momentum, adam"),
      std::invalid_argument);
}

TEST_CASE("every optimizer with its defaults descends a quadratic to a millionth of its height") {
  constexpr std::array curvatures{0.5f, 1.0f, 2.0f, 4.0f};
  constexpr std::array minimum{1.0f, -0.5f, 0.25f, 2.0f};
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto optimizer = sim::make_optimizer(row.name);
    std::array<float, 4> weights{}, gradients{};
    const auto loss = [&] {
      double sum = 0;
      for (std::size_t i = 0; i < 4; ++i) sum += 0.5 * curvatures[i] * std::pow(weights[i] - minimum[i], 2);
      return sum;
    };
    const double initial_loss = loss();
    for (int step = 0; step < 6000; ++step) {
      for (std::size_t i = 0; i < 4; ++i) gradients[i] = curvatures[i] * (weights[i] - minimum[i]);
      optimizer->begin_step();
      optimizer->update(0, weights, gradients);
    }
    CHECK(loss() < 1e-6 * initial_loss);
  }
}

TEST_CASE(
    "every optimizer treats each weight alone: the same bits however weights are grouped into parameters") {
  constexpr std::size_t size = 37;
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto together = sim::make_optimizer(row.name);
    const auto apart = sim::make_optimizer(row.name);
    std::vector<float> weights = random_values(size, 1);
    std::vector<float> scattered = weights;
    for (unsigned step = 0; step < 5; ++step) {
      const std::vector<float> gradients = random_values(size, 10 + step);
      together->begin_step();
      together->update(0, weights, gradients);
      apart->begin_step();
      for (std::size_t i = size; i-- > 0;) apart->update(i, {&scattered[i], 1}, {&gradients[i], 1});
    }
    CHECK(weights == scattered);
    CHECK(weights != random_values(size, 1));
  }
}

TEST_CASE("every optimizer refuses sizes that do not fit") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto optimizer = sim::make_optimizer(row.name);
    std::vector<float> weights(3), more_weights(4);
    optimizer->begin_step();
    CHECK_THROWS_WITH_AS(optimizer->update(7, weights, more_weights),
                         "optimizer: parameter 7 has 3 weights and 4 gradients", std::invalid_argument);
    optimizer->update(7, weights, weights);
    if (optimizer->state_bytes_per_weight() == 0) continue;
    CHECK_THROWS_WITH_AS(optimizer->update(7, more_weights, more_weights),
                         "optimizer: parameter 7 had 3 weights and now has 4", std::invalid_argument);
  }
}
