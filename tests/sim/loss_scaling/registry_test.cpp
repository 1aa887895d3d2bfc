#include "sim/loss_scaling/registry.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "fp16/formats.h"
#include "tests/sim/loss_scaling/scaler_traces.h"

using sim::AnyScaler;
using sim::Decision;
using sim::LossScaler;
using sim::ScalerKind;
using sim::ScalerRow;

namespace {

/// Calls `use` with the scaler itself, whatever its kind.
template <class Use>
auto with_scaler(AnyScaler& scaler, Use&& use) {
  return std::visit(
      [&use](auto& held) {
        if constexpr (requires { *held; }) {
          return use(*held);
        } else {
          return use(held);
        }
      },
      scaler);
}

std::string name_of(AnyScaler& scaler) {
  return with_scaler(scaler, [](auto& held) { return std::string(held.name()); });
}

/// One step of a global scaler: whether a weight gradient is not finite, and if so in the twin as well; else
/// the largest scaled gradient.
struct Step {
  bool nonfinite = false;
  bool nonfinite_twin = false;
  float largest = 1;
};

Decision feed(LossScaler& scaler, const Step& step) {
  const float largest = step.nonfinite ? NAN : step.largest;
  const fp16::ExponentHistogram run = scaler_traces::histogram_of({{largest, step.largest / 2}});
  const fp16::ExponentHistogram unscaled = scaler_traces::histogram_of({{step.largest, step.largest / 1024}});
  const sim::TwinSummary twin{.finite = !step.nonfinite_twin, .exponents = &unscaled};
  sim::GradientSummary summary{.found_nonfinite = step.nonfinite,
                               .max_abs = step.largest,
                               .exponents = scaler.needs_exponents() ? &run : nullptr};
  if (scaler.wants_twin(summary)) summary.twin = &twin;
  return scaler.update(summary);
}

/// A quarter not finite, some all zero, the others of a random magnitude.
Step random_step(std::mt19937& random) {
  const unsigned kind = random() % 16;
  const int exponent = static_cast<int>(random() % 40) - 24;
  return {.nonfinite = kind < 4,
          .nonfinite_twin = kind < 2,
          .largest = kind == 5 ? 0 : std::ldexp(1.0f, exponent)};
}

/// A random step and all that the scaler answered to it.
std::vector<double> answers(LossScaler& scaler, std::mt19937& random) {
  const double scale = scaler.scale();
  const Decision decision = feed(scaler, random_step(random));
  return {scale, scaler.unscale_scale(), static_cast<double>(decision)};
}

std::vector<double> answers(sim::LayerScaler& scaler, std::mt19937& random) {
  std::vector<double> given{scaler.loss_scale()};
  double scale = scaler.loss_scale();
  std::vector<sim::LayerOutcome> outcomes;
  for (const char* layer : {"last", "first"}) {
    const float largest = std::ldexp(1.0f, static_cast<int>(random() % 40) - 30);
    const sim::TensorStatistics statistics{.standard_deviation = largest / 4, .max_abs = largest};
    const sim::LayerScale answer = scaler.scale(layer, {.scale = scale, .gradient = statistics});
    scale *= answer.factor;
    given.insert(given.end(), {answer.factor, answer.divisor});
    outcomes.push_back({.layer = layer, .found_nonfinite = random() % 4 == 0});
  }
  given.push_back(static_cast<double>(scaler.update(outcomes)));
  return given;
}

std::vector<double> answers(sim::TensorScaler& scaler, std::mt19937& random) {
  std::vector<double> given;
  for (const char* tensor : {"weights", "gradients"}) {
    const float largest = std::ldexp(1.0f, static_cast<int>(random() % 40) - 30);
    given.push_back(scaler.scale(tensor, fp16::e5m2, largest));
  }
  scaler.end_step();
  return given;
}

/// For each global scaler: growth and updates as soon as its rule can be asked for them.
std::unique_ptr<LossScaler> impatient(const ScalerRow& row) {
  names::GivenOptions options;
  for (const auto& [name, value] : sim::make_scaler(row.name)->options()) {
    if (name == "growth_interval" || name == "update_period") options[name] = 1;
  }
  return sim::make_scaler(row.name, options);
}

template <class Use>
void for_each_global(Use&& use) {
  for (const ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    if (row.kind == ScalerKind::global) use(row);
  }
}

}  // namespace

TEST_CASE("every scaler is listed under its own name and makes one of its kind") {
  std::set<ScalerKind> kinds;
  for (const ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    AnyScaler scaler = sim::make_any_scaler(row.name);
    CHECK(name_of(scaler) == row.name);
    CHECK(scaler.index() == static_cast<std::size_t>(row.kind));
    CHECK_FALSE(row.description.empty());
    kinds.insert(row.kind);
  }
  CHECK(kinds.size() == 4);
  CHECK_THROWS_WITH_AS(sim::make_any_scaler("dinamic"),
                       doctest::Contains("unknown scaler 'dinamic'; did you mean 'dynamic'? allowed: none, "
                                         "static, dynamic, adaptive, apex_amp"),
                       std::invalid_argument);
}

TEST_CASE("a global loss scaler is asked for by name, and any other kind refused by its own") {
  for_each_global([](const ScalerRow& row) { CHECK(sim::make_scaler(row.name)->name() == row.name); });
  CHECK_THROWS_WITH_AS(sim::make_scaler("ada_loss"),
                       "scaler 'ada_loss' is of kind layer; allowed here: global loss scalers",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::make_scaler("delayed"), doctest::Contains("of kind tensor"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::make_scaler("unit_scaling"), doctest::Contains("of kind parametrisation"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::make_scaler("megatrn"), doctest::Contains("did you mean 'megatron'?"),
                       std::invalid_argument);
}

TEST_CASE(
    "every global scaler skips only what is not finite, and all of it but where the rule says otherwise") {
  const std::set<std::string_view> never_skip{"none", "popart", "graphcore_tensorflow"};
  for_each_global([&](const ScalerRow& row) {
    const auto scaler = sim::make_scaler(row.name);
    std::mt19937 random(1);
    int skipped = 0;
    for (int i = 0; i < 40; ++i) {
      const Step step = random_step(random);
      const Decision decision = feed(*scaler, step);
      REQUIRE(decision != Decision::abort);
      REQUIRE((decision == Decision::skip) == (step.nonfinite && !never_skip.contains(row.name)));
      skipped += decision == Decision::skip;
    }
    CHECK((skipped == 0) == never_skip.contains(row.name));
  });
}

TEST_CASE("scales reach neither 0 nor infinity but where the original lets them") {
  const std::set<std::string_view> reach_zero{"dynamic", "apex_amp", "apex_hysteresis", "colossalai",
                                              "keras",   "paddle",   "popart"};
  const std::set<std::string_view> reach_infinity{
      "apex_fp16_optimizer", "megatron", "deepspeed", "fairseq", "colossalai", "keras", "paddle",
      "mindspore_manager",   "popart"};
  for_each_global([&](const ScalerRow& row) {
    const auto falling = impatient(row);
    for (int i = 0; i < 400; ++i) {
      if (feed(*falling, {.nonfinite = true, .largest = 1e6f}) == Decision::abort) break;
    }
    CHECK((falling->scale() == 0) == reach_zero.contains(row.name));
    const auto rising = impatient(row);
    for (int i = 0; i < 400; ++i) feed(*rising, {.largest = 0x1p-20F});
    CHECK(std::isinf(rising->scale()) == reach_infinity.contains(row.name));
    CHECK_FALSE(std::isnan(falling->scale()));
    CHECK_FALSE(std::isnan(rising->scale()));
  });
}

TEST_CASE("only the rules that end a run do so, and they say why") {
  const std::set<std::string_view> abort{"deepspeed", "fairseq", "mindspore_manager"};
  for_each_global([&](const ScalerRow& row) {
    const auto scaler = sim::make_scaler(row.name);
    int steps = 0;
    while (steps < 3000 && feed(*scaler, {.nonfinite = true}) != Decision::abort) {
      REQUIRE(scaler->abort_reason().empty());
      ++steps;
    }
    CHECK((steps < 3000) == abort.contains(row.name));
    CHECK(scaler->abort_reason().empty() != abort.contains(row.name));
  });
}

TEST_CASE("every scaler continues from its saved state as if it had never stopped, each time alike") {
  for (const ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    if (row.kind == ScalerKind::parametrisation) continue;  // has no state
    AnyScaler resumed_scaler = sim::make_any_scaler(row.name);
    AnyScaler original_scaler = sim::make_any_scaler(row.name);
    std::visit(
        [](auto& original, auto& resumed) {
          if constexpr (std::is_same_v<decltype(original), decltype(resumed)>) {
            if constexpr (requires { *original; }) {
              std::mt19937 random(2), same_random(2);
              for (int i = 0; i < 50; ++i) {
                REQUIRE(answers(*original, random) == answers(*resumed, same_random));
                REQUIRE(original->state() == resumed->state());
              }
              for (int i = 0; i < 20; ++i) answers(*resumed, same_random);
              resumed->restore(original->state());
              same_random = random;
              for (int i = 0; i < 50; ++i) {
                REQUIRE(resumed->state() == original->state());
                REQUIRE(answers(*original, random) == answers(*resumed, same_random));
              }
            }
          }
        },
        original_scaler, resumed_scaler);
  }
}

TEST_CASE("every scaler remakes itself from the options it reports and refuses unknown and impossible ones") {
  for (const ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    AnyScaler scaler = sim::make_any_scaler(row.name);
    CHECK_THROWS_WITH_AS(sim::make_any_scaler(row.name, {{"no_such_option", 1}}),
                         doctest::Contains("no_such_option"), std::invalid_argument);
    names::GivenOptions reported;
    for (const auto& [name, value] : sim::options_of(scaler)) reported[name] = value;
    AnyScaler remade = sim::make_any_scaler(row.name, reported);
    CHECK(sim::options_of(remade) == sim::options_of(scaler));
    for (const auto& [name, value] : reported) {
      CHECK_THROWS_WITH_AS(sim::make_any_scaler(row.name, {{name, std::nan("")}}),
                           doctest::Contains((name + " = nan").c_str()), std::invalid_argument);
    }
  }
}

TEST_CASE("every scaler with a state refuses that of another") {
  for (const ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    AnyScaler scaler = sim::make_any_scaler(row.name);
    with_scaler(scaler, [](auto& held) {
      if constexpr (requires { held.restore({}); }) {
        CHECK_THROWS_AS(held.restore({{"no such entry", 1}}), std::invalid_argument);
      }
    });
  }
}

TEST_CASE("a scaler that needs exponents says so when a step comes without them") {
  for_each_global([](const ScalerRow& row) {
    const auto scaler = sim::make_scaler(row.name);
    if (scaler->needs_exponents()) {
      CHECK_THROWS_WITH_AS(scaler->update({}), doctest::Contains("without the exponents"),
                           std::invalid_argument);
    } else {
      CHECK(scaler->update({}) == Decision::apply);
    }
  });
}
