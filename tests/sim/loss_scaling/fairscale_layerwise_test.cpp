#include "sim/loss_scaling/fairscale_layerwise.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

using sim::Decision;
using sim::FairscaleLayerwise;
using sim::LayerScale;
using Trace = std::vector<double>;

namespace {

// One step through the layers "last" and "first", clean ('.') or not ('X'); returns log2 of the next scales.
struct Step {
  Decision decision;
  double last, first;
};

double log2_scale(FairscaleLayerwise& scaler, std::string_view layer) {
  return std::log2(scaler.scale(layer, {}).factor);
}

Step step(FairscaleLayerwise& scaler, char last, char first) {
  const std::vector<sim::LayerOutcome> outcomes{{"last", last == 'X'}, {"first", first == 'X'}};
  const Decision decision = scaler.update(outcomes);
  return {decision, log2_scale(scaler, "last"), log2_scale(scaler, "first")};
}

}  // namespace

TEST_CASE("fairscale_layerwise: every layer follows its own trace, and one bad layer skips the step") {
  FairscaleLayerwise scaler({.init_scale = 1024, .growth_interval = 4});
  const std::string_view pattern_last = "....X....XX.X.......";
  const std::string_view pattern_first = "......X.............";
  Trace last, first;
  for (std::size_t i = 0; i < pattern_last.size(); ++i) {
    const Step result = step(scaler, pattern_last[i], pattern_first[i]);
    const bool bad = pattern_last[i] == 'X' || pattern_first[i] == 'X';
    REQUIRE(result.decision == (bad ? Decision::skip : Decision::apply));
    last.push_back(result.last);
    first.push_back(result.first);
  }
  CHECK(last == Trace{10, 10, 10, 11, 10, 10, 10, 10, 11, 10, 9, 9, 8, 8, 8, 8, 9, 9, 9, 9});
  // Clean steps of a layer count though another layer had them skipped.
  CHECK(first == Trace{10, 10, 10, 11, 11, 11, 10, 10, 10, 10, 11, 11, 11, 11, 12, 12, 12, 12, 13, 13});
}

TEST_CASE("fairscale_layerwise: gradients carry the scale of the layer they are at") {
  FairscaleLayerwise scaler({}, {{"last", 256}, {"first", 1024}});
  CHECK(scaler.scale("last", {.scale = 1}) ==
        LayerScale{.factor = 256, .applies_to_weights = true, .divisor = 256});
  CHECK(scaler.scale("between", {.scale = 256}) ==
        LayerScale{.factor = 1.0 / 256, .applies_to_weights = true, .divisor = 1});
  CHECK(scaler.scale("first", {.scale = 1}) ==
        LayerScale{.factor = 1024, .applies_to_weights = true, .divisor = 1024});
  CHECK(scaler.loss_scale() == 1);
  CHECK(scaler.needs() == sim::LayerNeeds{});
}

TEST_CASE("fairscale_layerwise: layers that are not listed keep the scale 1, yet skip steps") {
  FairscaleLayerwise scaler({.init_scale = 64, .growth_interval = 2}, {{"last", 16}});
  CHECK(step(scaler, '.', 'X').decision == Decision::skip);
  const Step second = step(scaler, '.', '.');
  CHECK(second.last == 5);
  CHECK(second.first == 0);
}

TEST_CASE("fairscale_layerwise: the scale stays within the normal numbers of binary32") {
  FairscaleLayerwise scaler({.init_scale = 0x1p127, .growth_interval = 1});
  CHECK(step(scaler, '.', 'X').last == std::log2(double{std::numeric_limits<float>::max()}));
  FairscaleLayerwise falling({.init_scale = 0x1p-125});
  CHECK(step(falling, 'X', '.').last == -126);
  CHECK(step(falling, 'X', '.').last == -126);
  FairscaleLayerwise narrow({.init_scale = 4, .growth_interval = 1, .min_scale = 3, .max_scale = 5});
  CHECK(step(narrow, 'X', '.').last == std::log2(3.0));
  CHECK(log2_scale(narrow, "first") == std::log2(5.0));
}

TEST_CASE("fairscale_layerwise: with the stale check the step after an overflow stays scaled") {
  const std::vector<sim::LayerOutcome> bad{{"layer", true}}, clean{{"layer", false}};
  for (const bool stale : {false, true}) {
    CAPTURE(stale);
    FairscaleLayerwise scaler({.init_scale = 8, .stale_check = stale});
    CHECK(scaler.scale("layer", {}).divisor == 8);
    scaler.update(bad);
    CHECK(scaler.scale("layer", {}) ==
          LayerScale{.factor = 4, .applies_to_weights = true, .divisor = stale ? 1.0 : 4.0});
    scaler.update(clean);
    CHECK(scaler.scale("layer", {}).divisor == 4);
  }
}

TEST_CASE("fairscale_layerwise: the defaults are the original's") {
  CHECK(FairscaleLayerwise().options() == names::NamedValues{{"init_scale", 1},
                                                             {"growth_factor", 2},
                                                             {"backoff_factor", 0.5},
                                                             {"growth_interval", 10000},
                                                             {"min_scale", 0x1p-126},
                                                             {"max_scale", 0x1.fffffep127},
                                                             {"stale_check", 0}});
}

TEST_CASE("fairscale_layerwise: a restored state continues as the original") {
  const sim::FairscaleLayerwiseOptions options{.init_scale = 1024, .growth_interval = 3, .stale_check = true};
  FairscaleLayerwise original(options), resumed(options);
  std::mt19937 random(1);
  const auto outcome = [&random] { return random() % 4 == 0 ? 'X' : '.'; };
  for (int i = 0; i < 10; ++i) step(original, outcome(), outcome());
  resumed.restore(original.state());
  for (int i = 0; i < 30; ++i) {
    const char last = outcome(), first = outcome();
    REQUIRE(original.scale("last", {}) == resumed.scale("last", {}));
    REQUIRE(step(original, last, first).decision == step(resumed, last, first).decision);
    REQUIRE(original.state() == resumed.state());
  }
}

TEST_CASE("fairscale_layerwise: impossible options and states are refused") {
  const sim::FairscaleLayerwiseOptions impossible[] = {{.init_scale = 0},     {.growth_factor = 1},
                                                       {.backoff_factor = 1}, {.growth_interval = 0},
                                                       {.min_scale = 0},      {.max_scale = INFINITY}};
  for (const auto& options : impossible) CHECK_THROWS_AS(FairscaleLayerwise{options}, std::invalid_argument);
  CHECK_THROWS_WITH(
      FairscaleLayerwise({.min_scale = 4, .max_scale = 2}),
      "scaler 'fairscale_layerwise': min_scale = 4 is not allowed; allowed: at most max_scale = 2");
  CHECK_THROWS_WITH_AS(FairscaleLayerwise({}, {{"conv1", -1}}),
                       "scaler 'fairscale_layerwise': scale of layer 'conv1' = -1 is not allowed; allowed: "
                       "numbers in (0, inf)",
                       std::invalid_argument);

  FairscaleLayerwise scaler;
  step(scaler, '.', '.');
  const names::NamedValues before = scaler.state();
  for (const names::NamedValues& state : std::vector<names::NamedValues>{
           {{"scale", 1}},
           {{"last/scale", 0}, {"last/growth_tracker", 0}, {"last/found_nonfinite", 0}},
           {{"last/scale", 1}, {"last/growth_tracker", -1}, {"last/found_nonfinite", 0}},
           {{"last/scale", 1}, {"last/growth_tracker", 0}}}) {
    CHECK_THROWS_AS(scaler.restore(state), std::invalid_argument);
    CHECK(scaler.state() == before);
  }
}
