#include "sim/loss_scaling/registry.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

using sim::Decision;

namespace {

// Random steps: a quarter not finite, some all zero, the others of a random magnitude.
class RandomSteps {
 public:
  explicit RandomSteps(unsigned seed) : random_(seed) {}

  Decision feed(sim::LossScaler& scaler) {
    const unsigned kind = random_() % 16;
    const float largest = kind < 4   ? NAN
                          : kind < 6 ? 0.0f
                                     : std::ldexp(1.0f, static_cast<int>(random_() % 40) - 24);
    sim::ExponentHistogram exponents;
    exponents.add({{largest, largest / 2}});
    last_nonfinite = kind < 4;
    return scaler.update(
        {.found_nonfinite = last_nonfinite, .exponents = scaler.needs_exponents() ? &exponents : nullptr});
  }

  bool last_nonfinite = false;

 private:
  std::mt19937 random_;
};

// Steps after which no rule can have collapsed yet: dynamic's default loses at most one octave of 16 + 126 a
// step.
constexpr int budget = 100;

}  // namespace

TEST_CASE("every scaler is listed under its own name and makes it") {
  for (const sim::ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    CHECK(sim::make_scaler(row.name)->name() == row.name);
    CHECK_FALSE(row.description.empty());
  }
  CHECK_THROWS_WITH_AS(
      sim::make_scaler("dinamic"),
      doctest::Contains("unknown scaler 'dinamic'; did you mean 'dynamic'? allowed: none, static, "
                        "dynamic, adaptive"),
      std::invalid_argument);
}

TEST_CASE("every scaler keeps a finite positive scale and skips only what is not finite") {
  for (const sim::ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    const auto scaler = sim::make_scaler(row.name);
    RandomSteps steps(1);
    int skipped = 0;
    for (int i = 0; i < budget; ++i) {
      REQUIRE(std::isfinite(scaler->scale()));
      REQUIRE(scaler->scale() > 0);
      if (steps.feed(*scaler) == Decision::skip) {
        ++skipped;
        REQUIRE(steps.last_nonfinite);
      }
    }
    CHECK((skipped == 0) == (row.name == "none"));
  }
}

TEST_CASE(
    "every scaler continues from its saved state as if it had never stopped, and does so each time alike") {
  for (const sim::ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    const auto original = sim::make_scaler(row.name);
    const auto repeated = sim::make_scaler(row.name);
    RandomSteps steps(2), same_steps(2);
    for (int i = 0; i < budget / 2; ++i) {
      REQUIRE(steps.feed(*original) == same_steps.feed(*repeated));
      REQUIRE(original->state() == repeated->state());
    }
    const auto resumed = sim::make_scaler(row.name);
    resumed->restore(original->state());
    for (int i = 0; i < budget / 2; ++i) {
      REQUIRE(resumed->scale() == original->scale());
      REQUIRE(resumed->state() == original->state());
      REQUIRE(steps.feed(*original) == same_steps.feed(*resumed));
    }
  }
}

TEST_CASE(
    "every scaler refuses foreign state and unknown options, and remakes itself from the options it "
    "reports") {
  for (const sim::ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    const auto scaler = sim::make_scaler(row.name);
    CHECK_THROWS_AS(scaler->restore({{"no such entry", 1}}), std::invalid_argument);
    CHECK_THROWS_WITH_AS(sim::make_scaler(row.name, {{"no_such_option", 1}}),
                         doctest::Contains("no_such_option"), std::invalid_argument);
    sim::GivenOptions reported;
    for (const auto& [name, value] : scaler->options()) reported[name] = value;
    CHECK(sim::make_scaler(row.name, reported)->options() == scaler->options());
    for (const auto& [name, value] : reported) {
      CHECK_THROWS_WITH_AS(sim::make_scaler(row.name, {{name, std::nan("")}}),
                           doctest::Contains(name.c_str()), std::invalid_argument);
    }
  }
}

TEST_CASE("a scaler that needs exponents says so when a finite step comes without them") {
  for (const sim::ScalerRow& row : sim::scalers()) {
    CAPTURE(row.name);
    const auto scaler = sim::make_scaler(row.name);
    if (scaler->needs_exponents()) {
      CHECK_THROWS_AS(scaler->update({}), std::invalid_argument);
    } else {
      CHECK(scaler->update({}) == Decision::apply);
    }
  }
}
