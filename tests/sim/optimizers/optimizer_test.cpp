#include "sim/optimizers/optimizer.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/optimizers/adam.h"
#include "sim/optimizers/sgd.h"
#include "tests/sim/optimizers/tensors.h"

using test::step;
using test::tensor_of;
using test::values_of;

namespace {

/// Adds `change` to every weight: -1 * -change is exact.
sim::UpdateCounts add(sim::Tensor& weights, double change, const sim::UpdateArithmetic& arithmetic = {}) {
  sim::Sgd optimizer({.learning_rate = 1}, arithmetic);
  const bool in_doubles = arithmetic.operations == fp16::binary64;
  return step(
      optimizer, weights,
      tensor_of(std::vector<double>(weights.size(), -change), in_doubles ? fp16::binary64 : fp16::binary32));
}

/// Codes of all positive finite numbers of a 16-bit format.
sim::Tensor all_positive(fp16::Format format) {
  sim::Tensor weights({static_cast<std::size_t>(format.max_finite_code())}, format);
  std::uint16_t code = 1;
  for (std::uint16_t& weight : weights.elements<std::uint16_t>()) weight = code++;
  return weights;
}

/// The largest |d| that can be swallowed and whether it is, by the rule: half the distance to the neighbour
/// that lies on d's side, and ties go to the even significand. Spacing comes from the exponent, not from the
/// codes.
struct Border {
  double distance;
  bool belongs;
};
Border border(double weight, bool upward, int precision, int emin) {
  const int exponent = std::ilogb(weight);
  const bool is_normal = exponent >= emin;
  double ulp = std::ldexp(1.0, (is_normal ? exponent : emin) - precision + 1);
  const bool odd = std::fmod(weight / ulp, 2) == 1;
  const bool is_power_of_two = weight == std::ldexp(1.0, exponent);
  if (is_power_of_two && !upward && exponent > emin)
    ulp /= 2;  // 2^emin has subnormals of its own spacing below
  return {.distance = ulp / 2, .belongs = !odd};
}

/// Adds to every positive weight w the change |d| = border * factor, rounded to a float in `direction`, and
/// compares what is swallowed with the rule.
void check_swallowing(fp16::Format format, int precision, int emin) {
  const sim::Tensor all = all_positive(format);
  const std::vector<double> before = values_of(all);
  enum class Place { below, on, above };
  for (const bool upward : {true, false}) {
    for (const Place place : {Place::below, Place::on, Place::above}) {
      std::vector<double> gradients;
      std::uint64_t expected_swallowed = 0;
      std::vector<bool> swallowed;
      for (const double weight : before) {
        const Border edge = border(weight, upward, precision, emin);
        const float on = static_cast<float>(edge.distance);
        REQUIRE(on == edge.distance);
        const float distance = place == Place::on      ? on
                               : place == Place::below ? std::nextafter(on, 0.0f)
                                                       : std::nextafter(on, HUGE_VALF);
        gradients.push_back(upward ? -distance : distance);
        swallowed.push_back(place == Place::below || (place == Place::on && edge.belongs));
        expected_swallowed += swallowed.back();
      }
      sim::Sgd optimizer({.learning_rate = 1});
      sim::Tensor weights = all;
      const sim::UpdateCounts counts = step(optimizer, weights, tensor_of(gradients));
      CHECK(counts.updates == before.size());
      CHECK(counts.swallowed == expected_swallowed);
      const auto codes = weights.elements<std::uint16_t>();
      int wrong = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        const int moved =
            static_cast<int>(codes[i]) - static_cast<int>(i + 1);  // beyond the largest is infinity
        wrong += moved != (swallowed[i] ? 0 : upward ? 1 : -1);
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("optimizer: swallowing follows the rule for every positive half and change beside the border") {
  check_swallowing(fp16::binary16, 11, -14);
}

TEST_CASE("optimizer: swallowing follows the rule for every positive bfloat16") {
  check_swallowing(fp16::bfloat16, 8, -126);
}

TEST_CASE("optimizer: a ratio below 2^11 is never swallowed by normal halves and one of 2^12 always") {
  sim::Tensor weights = all_positive(fp16::binary16);
  for (const auto& [ratio, all_swallowed] : {std::pair{2047.0, false}, std::pair{4096.0, true}}) {
    std::vector<double> gradients;
    for (const double weight : values_of(weights)) gradients.push_back(static_cast<float>(-weight / ratio));
    for (std::size_t code = 1; code < 0x400; ++code)
      gradients[code - 1] = 0;  // subnormals have a rule of their own
    sim::Tensor updated = weights;
    sim::Sgd optimizer({.learning_rate = 1});
    const sim::UpdateCounts counts = step(optimizer, updated, tensor_of(gradients));
    CHECK(counts.updates == 0x7c00 - 0x400);
    CHECK(counts.swallowed == (all_swallowed ? counts.updates : 0));
  }
}

TEST_CASE("optimizer: a sum that binary32 would round onto a midpoint is rounded once") {
  // 1 + 2^-11 (1 + 2^-23) lies above the midpoint of 1 and its successor; in binary32 it is that midpoint.
  sim::Tensor weight = tensor_of({1}, fp16::binary16);
  add(weight, 0x1.000002p-11);
  CHECK(values_of(weight).front() == 1 + 0x1p-10);
  // A tiny weight decides the tie of a large change: 257 lies in the middle of two bfloat16 numbers.
  for (const auto& [tiny, expected] : {std::pair{0x1p-100, 258.0}, std::pair{-0x1p-100, 256.0}}) {
    weight = tensor_of({tiny}, fp16::bfloat16);
    add(weight, 257);
    CHECK(values_of(weight).front() == expected);
  }
  weight = tensor_of({0x1p-60}, fp16::binary32);  // the same from binary64 to binary32
  add(weight, 1 + 0x1p-24, {.operations = fp16::binary64});
  CHECK(values_of(weight).front() == 1 + 0x1p-23);
}

TEST_CASE("optimizer: what counts as an update") {
  sim::Tensor weights = tensor_of({1, 1, 0, 2});
  sim::Sgd sgd({.learning_rate = 1});
  CHECK(step(sgd, weights, tensor_of({0, 0x1p-26, 0x1p-149, -1})) ==
        sim::UpdateCounts{.updates = 3, .swallowed = 1});
  CHECK(values_of(weights) == std::vector{1.0, 1.0, -0x1p-149, 3.0});
  // Decoupled decay is a change too, and is swallowed where the weight cannot show it.
  sim::AdamWOptions options;
  options.weight_decay = 0.1;  // 1 - 0.0001
  sim::AdamW adamw(options);
  weights = tensor_of({1, 0}, fp16::binary16);
  CHECK(step(adamw, weights, tensor_of({0, 0})) == sim::UpdateCounts{.updates = 1, .swallowed = 1});
}

TEST_CASE("optimizer: weights are rounded in the direction that is asked for") {
  const auto added = [](double change, fp16::Rounding rounding, fp16::Format format = fp16::binary16) {
    sim::Tensor weight = tensor_of({1}, format);
    add(weight, change, {.weight_rounding = rounding});
    return values_of(weight).front();
  };
  CHECK(added(0x1p-149, fp16::Rounding::toward_positive) == 1 + 0x1p-10);
  CHECK(added(0x1p-149, fp16::Rounding::toward_zero) == 1);
  CHECK(added(-0x1p-149, fp16::Rounding::toward_zero) == 1 - 0x1p-11);
  CHECK(added(0x1p-11, fp16::Rounding::nearest_away) == 1 + 0x1p-10);
  CHECK(added(0x1p-149, fp16::Rounding::toward_positive, fp16::bfloat16) == 1 + 0x1p-7);
  CHECK(added(0x1p-149, fp16::Rounding::toward_positive, fp16::binary32) == 1);  // wide weights: to nearest
}

// The number of weights that move is binomial. Six standard deviations are left room for, and the draws are
// fixed: a rounding of the right chance passes but for one seed in 5e8.
TEST_CASE("optimizer: stochastic rounding moves a weight with the chance that the change is of the gap") {
  constexpr std::size_t size = 1 << 18;
  for (const fp16::Format format : {fp16::binary16, fp16::bfloat16}) {
    const double gap = format == fp16::binary16 ? 0x1p-10 : 0x1p-7;
    for (const double chance : {0.25, 0x1p-10, 0x1p-16}) {
      sim::Tensor weights = tensor_of(std::vector<double>(size, 1.0), format);
      const sim::UpdateCounts counts =
          add(weights, gap * chance, {.weight_rounding = fp16::Rounding::stochastic, .seed = 7});
      const double moved = static_cast<double>(counts.updates - counts.swallowed);
      CHECK(std::fabs(moved - chance * size) <= 6 * std::sqrt(chance * (1 - chance) * size));
      for (const double weight : values_of(weights)) REQUIRE((weight == 1 || weight == 1 + gap));
    }
  }
}

TEST_CASE("optimizer: stochastic rounding is keyed by seed, parameter, step and element") {
  const auto moved = [](std::uint64_t seed, std::size_t parameter, int steps) {
    sim::Sgd optimizer({.learning_rate = 1}, {.weight_rounding = fp16::Rounding::stochastic, .seed = seed});
    for (int k = 0; k < steps; ++k) optimizer.begin_step();
    sim::Tensor weights = tensor_of(std::vector<double>(3000, 1.0), fp16::binary16);
    optimizer.update(parameter, weights, tensor_of(std::vector<double>(3000, -0x1p-11)));
    return values_of(weights);
  };
  const std::vector<double> reference = moved(1, 0, 1);
  CHECK(moved(1, 0, 1) == reference);
  CHECK(moved(2, 0, 1) != reference);
  CHECK(moved(1, 1, 1) != reference);
  CHECK(moved(1, 0, 2) != reference);
  CHECK(std::vector(reference.begin(), reference.begin() + 1024) !=
        std::vector(reference.begin() + 1024, reference.begin() + 2048));
}

TEST_CASE("optimizer: impossible arithmetic is refused") {
  CHECK_THROWS_WITH_AS(
      sim::Sgd({}, {.operations = fp16::e4m3}),
      "optimizer: computing in e4m3 is not allowed; allowed: binary64, binary32, bfloat16, binary16",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      sim::Sgd({}, {.state = fp16::tf32}),
      "optimizer: state in tf32 is not allowed; allowed: binary64, binary32, bfloat16, binary16",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::Sgd({}, {.state = fp16::binary64}),
                       "optimizer: state in binary64 needs operations in binary64, not in binary32",
                       std::invalid_argument);
  sim::Sgd in_halves({}, {.operations = fp16::binary16, .state = fp16::binary16});
  sim::Tensor weights = tensor_of({1});
  CHECK_THROWS_WITH_AS(in_halves.update(0, weights, tensor_of({1})),
                       "optimizer: operations in binary16 need weights in that format, not in binary32",
                       std::invalid_argument);
  sim::Sgd in_floats;
  CHECK_THROWS_WITH_AS(in_floats.update(0, weights, tensor_of({1}, fp16::binary64)),
                       "optimizer: weights and gradients in binary64 need operations in binary64",
                       std::invalid_argument);
}

TEST_CASE("optimizer: state of another optimizer is refused with both names, and nothing changes") {
  sim::Adam adam;
  adam.allocate(0, 3);
  sim::Tensor weights = tensor_of({1, 2, 3});
  step(adam, weights, tensor_of({1, 1, 1}));
  sim::Adam other_size;
  other_size.allocate(0, 4);
  CHECK_THROWS_WITH_AS(
      other_size.restore(adam.state()),
      "optimizer 'adam': saved state has 'first moment of parameter 0' of 12 bytes in place of "
      "'first moment of parameter 0' of 16 bytes",
      std::invalid_argument);
  sim::Momentum momentum;
  momentum.allocate(0, 3);
  CHECK_THROWS_WITH_AS(
      momentum.restore(adam.state()),
      "optimizer 'momentum': saved state has 'first moment of parameter 0' of 12 bytes in place of "
      "'momentum of parameter 0' of 12 bytes",
      std::invalid_argument);
  sim::Sgd sgd;
  CHECK_THROWS_WITH_AS(
      sgd.restore(adam.state()),
      "optimizer 'sgd': saved state has 'first moment of parameter 0' of 12 bytes in place of nothing",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      adam.restore(sgd.state()),
      "optimizer 'adam': saved state has nothing in place of 'first moment of parameter 0' of 12 bytes",
      std::invalid_argument);
  CHECK(momentum.steps() == 0);
  CHECK(adam.steps() == 1);
}
