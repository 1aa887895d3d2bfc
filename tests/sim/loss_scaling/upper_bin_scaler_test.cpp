#include "sim/loss_scaling/upper_bin_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "tests/sim/loss_scaling/scaler_traces.h"

using sim::Decision;
using Trace = std::vector<double>;

namespace {

// log2 S after each step; the gradients of a step are given as they are after scaling.
Trace follow(sim::LossScaler& scaler, const std::vector<std::vector<float>>& steps) {
  Trace log2_scales;
  for (const std::vector<float>& gradients : steps) {
    const fp16::ExponentHistogram exponents = scaler_traces::histogram_of(gradients);
    // never skips, whatever is found
    REQUIRE(scaler.update({.found_nonfinite = true, .exponents = &exponents}) == Decision::apply);
    log2_scales.push_back(std::log2(static_cast<double>(scaler.scale())));
  }
  return log2_scales;
}

using Steps = std::vector<std::vector<float>>;

std::vector<float> ten(int upper, float high, float low) {
  std::vector<float> gradients(10, low);
  for (int i = 0; i < upper; ++i) gradients[static_cast<std::size_t>(i)] = high;
  return gradients;
}

}  // namespace

TEST_CASE("PopART doubles or halves at every step, by whether any gradient reaches 8188") {
  const auto scaler = sim::make_scaler("popart");
  CHECK(scaler->scale() == 1);
  // 8184 is the half below 8188
  CHECK(follow(*scaler, {{8184, 0, 1}, {-8184}, {-8188, 1}, {8188}, {65504, 0}, {0}, {}}) ==
        Trace{1, 2, 1, 0, -1, 0, 1});
}

TEST_CASE("the exponents tell exactly what lies at PopART's edge, wherever a power of two puts it") {
  for (const auto& [location, edge, below] :
       {std::tuple(1.0, 65504.0f, 65472.0f), std::tuple(0.5, 32752.0f, 32736.0f),
        std::tuple(0.0625, 4094.0f, 4092.0f), std::tuple(0x1p-10, 63.96875f, 63.9375f)}) {
    CAPTURE(location);
    const auto scaler = sim::make_scaler("popart", {{"bin_edge_location", location}});
    CHECK(follow(*scaler, {{below}, {edge}, {-below}, {-edge}}) == Trace{1, 0, 1, 0});
  }
}

TEST_CASE("PopART compares the share of upper gradients with its threshold: more than it backs off") {
  const auto scaler = sim::make_scaler("popart", {{"threshold", 0.25}});
  CHECK(follow(*scaler, {ten(2, 10'000, 1), ten(3, 10'000, 1), {9000, 1, 1, 1}, {9000, 1, 1}}) ==
        Trace{1, 0, 1, 0});
  // zeros are lower gradients, infinities and NaNs upper ones
  CHECK(follow(*scaler, {{9000, 0, 0, 0}, {INFINITY, 0, 0}, {NAN, 1, 1}}) == Trace{1, 0, -1});
}

TEST_CASE("PopART adds up the counts of an update period") {
  const auto scaler = sim::make_scaler("popart", {{"threshold", 0.25}, {"update_period", 2}});
  CHECK(follow(*scaler, {ten(5, 9000, 1), ten(1, 9000, 1), ten(5, 9000, 1), ten(0, 9000, 1)}) ==
        Trace{0, -1, -1, 0});
}

TEST_CASE("PopART: the user's factor, a clipped scale that goes on behind the clip, no floor or ceiling") {
  const auto clipped = sim::make_scaler("popart", {{"init_scale", 4}, {"max_scale", 8}});
  CHECK(follow(*clipped, {{1}, {1}, {1}, {9000}, {9000}, {9000}}) == Trace{3, 3, 3, 3, 3, 2});
  const auto unbounded = sim::make_scaler("popart");
  CHECK(follow(*unbounded, Steps(129, {1.0f})).back() == HUGE_VAL);
  const auto vanishing = sim::make_scaler("popart");
  CHECK(follow(*vanishing, Steps(150, {65504.0f})).back() == -HUGE_VAL);
}

TEST_CASE("Graphcore TensorFlow moves every eighth step by the share of gradients at 65504") {
  const auto scaler = sim::make_scaler("graphcore_tensorflow", {{"init_scale", 4}});
  Steps steps(24, {65472.0f, 1});
  steps[9] = {65504, 1};
  CHECK(follow(*scaler, steps) ==
        Trace{2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 3});
  const auto latest = sim::make_scaler("graphcore_tensorflow", {{"accumulate_statistics", 0}});
  steps.assign(16, {65504.0f});
  steps[7] = {1};
  CHECK(follow(*latest, steps) == Trace{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0});
}

TEST_CASE("Graphcore TensorFlow refuses a scale that would reach the maximum or fall below 1") {
  const names::GivenOptions each_step{{"update_period", 1}};
  names::GivenOptions high = each_step;
  high["init_scale"] = 8192;
  CHECK(follow(*sim::make_scaler("graphcore_tensorflow", high), Steps(3, {1.0f})) == Trace{14, 14, 14});
  CHECK(follow(*sim::make_scaler("graphcore_tensorflow", each_step), {{65504}, {1}, {65504}, {65504}}) ==
        Trace{0, 1, 0, 0});
}

TEST_CASE("defaults of both are the originals', and impossible ones are refused") {
  CHECK(sim::make_scaler("popart")->options() == names::NamedValues{{"init_scale", 1},
                                                                    {"update_period", 1},
                                                                    {"threshold", 1e-7},
                                                                    {"bin_edge_location", 0.125},
                                                                    {"max_scale", 0}});
  CHECK(sim::make_scaler("graphcore_tensorflow")->options() ==
        names::NamedValues{{"init_scale", 1},
                           {"growth_factor", 2},
                           {"backoff_factor", 0.5},
                           {"update_period", 8},
                           {"threshold", 1e-5},
                           {"max_scale", 32768},
                           {"accumulate_statistics", 1}});
  const auto refused = [](const char* name, const names::GivenOptions& options) {
    CHECK_THROWS_AS(sim::make_scaler(name, options), std::invalid_argument);
  };
  refused("popart", {{"threshold", 0}});
  refused("popart", {{"threshold", 1}});
  refused("popart", {{"update_period", 0}});
  refused("popart", {{"init_scale", 4}, {"max_scale", 2}});
  refused("popart", {{"growth_factor", 2}});
  refused("graphcore_tensorflow", {{"init_scale", 16384}});
  refused("graphcore_tensorflow", {{"growth_factor", 1}});
  CHECK_THROWS_WITH_AS(
      sim::make_scaler("popart", {{"bin_edge_location", 0.3}}),
      "scaler 'popart': bin_edge_location = 0.3 is not allowed; allowed: powers of two, whose "
      "edges the exponents of the gradients resolve",
      std::invalid_argument);
}
