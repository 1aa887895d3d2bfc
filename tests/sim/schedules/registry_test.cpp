#include "sim/schedules/registry.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace {

double factor(const sim::Schedule& schedule, std::uint64_t applied, std::uint64_t total,
              std::uint64_t skipped = 0) {
  return schedule.factor({.applied = applied, .skipped = skipped, .total = total});
}

}  // namespace

TEST_CASE("schedules: every one is listed under its own name, makes it and remakes it from its options") {
  for (const sim::ScheduleRow& row : sim::schedules()) {
    CAPTURE(row.name);
    const auto schedule = sim::make_schedule(row.name);
    CHECK(schedule->name() == row.name);
    CHECK_FALSE(row.description.empty());
    names::GivenOptions reported;
    for (const auto& [name, value] : schedule->options()) reported[name] = value;
    CHECK(reported.contains("warmup_steps"));
    CHECK(sim::make_schedule(row.name, reported)->options() == schedule->options());
    CHECK_THROWS_AS(sim::make_schedule(row.name, {{"no_such_option", 1}}), std::invalid_argument);
    CHECK_THROWS_AS(sim::make_schedule(row.name, {{"warmup_steps", -1}}), std::invalid_argument);
    CHECK_THROWS_AS(sim::make_schedule(row.name, {{"counts_skipped_steps", 2}}), std::invalid_argument);
  }
  CHECK(sim::make_schedule()->name() == "constant");
  CHECK_THROWS_WITH_AS(
      sim::make_schedule("cosin"),
      "unknown schedule 'cosin'; did you mean 'cosine'? allowed: constant, cosine, linear, step",
      std::invalid_argument);
}

TEST_CASE("schedules: every one starts at 1, stays between 0 and 1 and never rises after warm-up") {
  for (const sim::ScheduleRow& row : sim::schedules()) {
    CAPTURE(row.name);
    const auto schedule = sim::make_schedule(row.name, {{"warmup_steps", 10}});
    CHECK(factor(*schedule, 10, 3000) == 1);
    for (std::uint64_t t = 10; t < 3005; ++t) {
      const double now = factor(*schedule, t, 3000);
      CHECK((now >= 0 && now <= 1));
      CHECK(factor(*schedule, t + 1, 3000) <= now);
    }
  }
}

TEST_CASE("schedules: warm-up is the same line for every one") {
  for (const sim::ScheduleRow& row : sim::schedules()) {
    CAPTURE(row.name);
    const auto schedule = sim::make_schedule(row.name, {{"warmup_steps", 4}});
    CHECK(factor(*schedule, 0, 100) == 0.25);
    CHECK(factor(*schedule, 2, 100) == 0.75);
    CHECK(factor(*schedule, 3, 100) == 1);
    CHECK(factor(*schedule, 4, 100) == 1);
    CHECK(factor(*schedule, 1, 2) == 0.5);  // a run that ends within its warm-up
    CHECK(std::isfinite(factor(*schedule, 4, 4)));
  }
}

TEST_CASE("schedules: skipped steps count only where the flag says so") {
  for (const sim::ScheduleRow& row : sim::schedules()) {
    CAPTURE(row.name);
    const auto right = sim::make_schedule(row.name, {{"warmup_steps", 4}});
    const auto wrong = sim::make_schedule(row.name, {{"warmup_steps", 4}, {"counts_skipped_steps", 1}});
    for (const std::uint64_t applied : {0, 1, 50}) {
      CHECK(factor(*right, applied, 100, 7) == factor(*right, applied, 100));
      CHECK(factor(*wrong, applied, 100, 7) == factor(*right, applied + 7, 100));
    }
    CHECK(factor(*wrong, 0, 100, 2) == 0.75);
  }
}

TEST_CASE("schedules: values of the formulas") {
  const auto linear = sim::make_schedule("linear", {{"warmup_steps", 2}});
  CHECK(factor(*linear, 6, 10) == 0.5);
  CHECK(factor(*linear, 10, 10) == 0);
  CHECK(factor(*linear, 12, 10) == 0);
  const auto linear_to = sim::make_schedule("linear", {{"final_factor", 0.5}});
  CHECK(factor(*linear_to, 4, 8) == 0.75);
  CHECK(factor(*linear_to, 8, 8) == 0.5);
  const auto cosine_to = sim::make_schedule("cosine", {{"final_factor", 0.25}});
  CHECK(factor(*cosine_to, 0, 8) == 1);
  CHECK(factor(*cosine_to, 8, 8) == 0.25);
  CHECK(factor(*cosine_to, 0, 0) == 0.25);
  const auto step = sim::make_schedule("step", {{"period", 3}, {"decay", 0.5}});
  CHECK(factor(*step, 2, 10) == 1);
  CHECK(factor(*step, 3, 10) == 0.5);
  CHECK(factor(*step, 9, 10) == 0.125);
  CHECK_THROWS_AS(sim::make_schedule("step", {{"period", 0}}), std::invalid_argument);
  CHECK_THROWS_AS(sim::make_schedule("step", {{"decay", 0}}), std::invalid_argument);
  CHECK_THROWS_AS(sim::make_schedule("cosine", {{"final_factor", 1.5}}), std::invalid_argument);
}

// std::cos of a long double is off by about 2^-63, p by 2^-54, which the slope of at most pi/2 widens.
TEST_CASE("schedules: cosine lies within 2^-50 of the exact value") {
  const auto cosine = sim::make_schedule("cosine");
  constexpr std::uint64_t total = 99991;
  double error = 0;
  for (std::uint64_t t = 0; t <= total; ++t) {
    const long double p = static_cast<long double>(t) / total;
    const long double exact = (1 + std::cos(std::numbers::pi_v<long double> * p)) / 2;
    error = std::fmax(error, static_cast<double>(std::fabs(factor(*cosine, t, total) - exact)));
  }
  CHECK(error <= 0x1p-50);
}
