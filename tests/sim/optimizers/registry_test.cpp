#include "sim/optimizers/registry.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/optimizers/tensors.h"

using test::bits_of;
using test::step;
using test::tensor_of;
using test::values_of;

namespace {

std::vector<double> random_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(size);
  for (double& value : values) value = static_cast<float>(random() % 2001) / 1000 - 1;
  return values;
}

/// Large enough for 8-bit state, and no multiple of a block.
constexpr std::size_t many = 4500;

struct Setting {
  sim::UpdateArithmetic arithmetic = {};
  fp16::Format weights = fp16::binary32;
};

/// Every way of updating, those of master weights first.
std::vector<Setting> settings() {
  return {
      {},
      {.arithmetic = {.state = fp16::binary16}, .weights = fp16::binary16},
      {.arithmetic = {.state = fp16::bfloat16}},
      {.arithmetic = {.operations = fp16::binary16, .state = fp16::binary16}, .weights = fp16::binary16},
      {.arithmetic = {.operations = fp16::bfloat16, .state = fp16::bfloat16}, .weights = fp16::bfloat16},
      {.arithmetic = {.operations = fp16::binary64, .state = fp16::binary64}, .weights = fp16::binary64},
      {.arithmetic = {.weight_rounding = fp16::Rounding::stochastic, .seed = 3}, .weights = fp16::binary16},
  };
}

/// Two parameters, of which the second takes turns with the first.
struct Run {
  Run(const sim::OptimizerRow& row, const Setting& setting)
      : optimizer(row.make({}, setting.arithmetic)),
        weights{tensor_of(random_values(5, 1), setting.weights),
                tensor_of(random_values(many, 2), setting.weights)} {
    for (std::size_t i = 0; i < weights.size(); ++i) optimizer->allocate(i, weights[i].size());
  }

  void train(unsigned first, unsigned last) {
    for (unsigned k = first; k < last; ++k) {
      optimizer->begin_step();
      for (std::size_t i = 0; i < weights.size(); ++i)
        counts +=
            optimizer->update(i, weights[i], tensor_of(random_values(weights[i].size(), 10 + 2 * k + i)));
    }
  }

  std::unique_ptr<sim::Optimizer> optimizer;
  std::array<sim::Tensor, 2> weights;
  sim::UpdateCounts counts = {};
};

std::vector<std::vector<std::uint64_t>> weights_of(const Run& run) {
  return {bits_of(run.weights[0]), bits_of(run.weights[1])};
}

}  // namespace

TEST_CASE("optimizers: every one is listed under its own name, makes it and remakes it from its options") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto optimizer = sim::make_optimizer(row.name);
    CHECK(optimizer->name() == row.name);
    CHECK_FALSE(row.description.empty());
    names::GivenOptions reported;
    for (const auto& [name, value] : optimizer->options()) reported[name] = value;
    CHECK(reported.at("learning_rate") == optimizer->learning_rate());
    CHECK(sim::make_optimizer(row.name, reported)->options() == optimizer->options());
    const std::string named = "optimizer '" + std::string(row.name) + "'";
    CHECK_THROWS_WITH_AS(sim::make_optimizer(row.name, {{"learning_rat", 1}}),
                         doctest::Contains((named + ": unknown option 'learning_rat'").c_str()),
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(sim::make_optimizer(row.name, {{"learning_rate", -1}}),
                         doctest::Contains((named + ": learning_rate = -1 is not allowed").c_str()),
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(
      sim::make_optimizer("adm"),
      doctest::Contains(
          "unknown optimizer 'adm'; did you mean 'adam'? allowed: sgd, momentum, adam, adamw, adamw8bit"),
      std::invalid_argument);
}

TEST_CASE("optimizers: defaults are those of the originals") {
  const std::map<std::string, double, std::less<>> weight_decay{
      {"sgd", 0}, {"momentum", 0}, {"adam", 0}, {"adamw", 0.01}, {"adamw8bit", 0.01}};
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto optimizer = sim::make_optimizer(row.name);
    names::GivenOptions options;
    for (const auto& [name, value] : optimizer->options()) options[name] = value;
    CHECK(options.at("weight_decay") == weight_decay.find(row.name)->second);
  }
}

namespace {

/// The loss of a quadratic of four curvatures over `size` weights after `steps` steps, as a share of the
/// first.
double remaining_loss(sim::Optimizer& optimizer, std::size_t size, int steps) {
  constexpr std::array curvatures{0.5f, 1.0f, 2.0f, 4.0f};
  constexpr std::array minimum{1.0f, -0.5f, 0.25f, 2.0f};
  sim::Tensor weights = tensor_of(std::vector<double>(size, 0.0)), gradients = weights;
  const auto loss = [&] {
    const std::span<const float> w = std::as_const(weights).elements<float>();
    const std::span<float> g = gradients.elements<float>();
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const float distance = w[i] - minimum[i % 4];
      g[i] = curvatures[i % 4] * distance;
      sum += 0.5 * curvatures[i % 4] * distance * distance;
    }
    return sum;
  };
  const double initial_loss = loss();
  for (int k = 0; k < steps; ++k) {
    step(optimizer, weights, gradients);
    loss();
  }
  return loss() / initial_loss;
}

}  // namespace

TEST_CASE("optimizers: every one without weight decay descends a quadratic to a millionth of its height") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    CHECK(remaining_loss(*sim::make_optimizer(row.name, {{"weight_decay", 0}}), 4, 6000) < 1e-6);
    // So many weights that 8-bit state is used.
    CHECK(remaining_loss(*sim::make_optimizer(row.name, {{"weight_decay", 0}, {"learning_rate", 0.02}}), 4096,
                         800) < 1e-6);
  }
}

TEST_CASE("optimizers: state that is saved and restored goes on bit for bit") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    for (const Setting& setting : settings()) {
      CAPTURE(row.name);
      CAPTURE(fp16::name_of(setting.arithmetic.operations));
      Run whole(row, setting), first(row, setting), second(row, setting);
      whole.train(0, 6);
      first.train(0, 3);
      std::vector<std::vector<std::byte>> saved_bytes;
      std::vector<sim::StateBlock> saved;
      for (const sim::StateBlock& block : first.optimizer->state()) {
        saved_bytes.emplace_back(block.bytes.begin(), block.bytes.end());
        saved.push_back({block.name, saved_bytes.back()});
      }
      first.train(3, 4);  // what was saved is a copy
      second.optimizer->restore(saved);
      for (std::size_t i = 0; i < 2; ++i) {
        Run replayed(row, setting);
        replayed.train(0, 3);
        second.weights[i] = replayed.weights[i];
      }
      second.train(3, 6);
      CHECK(weights_of(second) == weights_of(whole));
      CHECK(weights_of(second) != weights_of(first));
      CHECK(second.optimizer->steps() == 6);
    }
  }
}

TEST_CASE("optimizers: bytes of state per weight") {
  const std::map<std::string, double, std::less<>> expected{
      {"sgd", 0}, {"momentum", 4}, {"adam", 8}, {"adamw", 8}, {"adamw8bit", 2.03125}};
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto bytes = [&](const sim::UpdateArithmetic& arithmetic) {
      const auto optimizer = row.make({}, arithmetic);
      CHECK(optimizer->state_bytes() == 0);
      optimizer->allocate(0, 4096);
      optimizer->allocate(1, 8192);
      std::size_t of_blocks = 0;
      for (const sim::StateBlock& block : optimizer->state()) of_blocks += block.bytes.size();
      CHECK(of_blocks == optimizer->state_bytes() + sizeof(std::uint64_t));  // the count of steps
      return static_cast<double>(optimizer->state_bytes()) / (4096 + 8192);
    };
    const double in_binary32 = expected.find(row.name)->second;
    const bool in_8_bits = row.name == "adamw8bit";
    CHECK(bytes({}) == in_binary32);
    CHECK(bytes({.state = fp16::binary16}) == (in_8_bits ? 1 : 0.5) * in_binary32);
    CHECK(bytes({.operations = fp16::binary64, .state = fp16::binary64}) ==
          (in_8_bits ? 1 : 2) * in_binary32);
  }
}

TEST_CASE(
    "optimizers: each weight is treated alone: the same bits however weights are grouped into parameters") {
  constexpr std::size_t size = 37;
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto together = sim::make_optimizer(row.name);
    const auto apart = sim::make_optimizer(row.name);
    sim::Tensor weights = tensor_of(random_values(size, 1));
    std::vector<double> scattered = values_of(weights);
    for (unsigned k = 0; k < 5; ++k) {
      const std::vector<double> gradients = random_values(size, 10 + k);
      step(*together, weights, tensor_of(gradients));
      apart->begin_step();
      for (std::size_t i = size; i-- > 0;) {
        sim::Tensor weight = tensor_of({scattered[i]});
        apart->update(i, weight, tensor_of({gradients[i]}));
        scattered[i] = values_of(weight).front();
      }
    }
    CHECK(values_of(weights) == scattered);
    CHECK(scattered != random_values(size, 1));
  }
}

TEST_CASE("optimizers: threads change no bit and no count") {
  constexpr std::size_t size = 2 * (std::size_t{1} << 15) + 77;
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    for (Setting setting : settings()) {
      CAPTURE(row.name);
      std::vector<std::vector<std::uint64_t>> results;
      std::vector<sim::UpdateCounts> counts;
      for (const int threads : {1, 3}) {
        setting.arithmetic.threads = threads;
        const auto optimizer = row.make({}, setting.arithmetic);
        sim::Tensor weights = tensor_of(random_values(size, 1), setting.weights);
        for (unsigned k = 0; k < 2; ++k)
          counts.push_back(step(*optimizer, weights, tensor_of(random_values(size, 2 + k))));
        results.push_back(bits_of(weights));
      }
      CHECK(results[0] == results[1]);
      CHECK(counts[0] == counts[2]);
      CHECK(counts[1] == counts[3]);
      CHECK(counts[0].updates > size * 9 / 10);
    }
  }
}

TEST_CASE("optimizers: every one refuses sizes that do not fit") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    CAPTURE(row.name);
    const auto optimizer = sim::make_optimizer(row.name);
    sim::Tensor weights = tensor_of({1, 2, 3}), more_weights = tensor_of({1, 2, 3, 4});
    optimizer->begin_step();
    CHECK_THROWS_WITH_AS(optimizer->update(7, weights, more_weights),
                         "optimizer: parameter 7 has 3 weights and 4 gradients", std::invalid_argument);
    optimizer->update(7, weights, weights);
    CHECK_THROWS_WITH_AS(optimizer->update(7, more_weights, more_weights),
                         "optimizer: parameter 7 had 3 weights and now has 4", std::invalid_argument);
  }
}
