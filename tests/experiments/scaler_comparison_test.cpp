#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/scaler_comparison/criteria.h"
#include "experiments/scaler_comparison/findings.h"
#include "experiments/scaler_comparison/ranking.h"
#include "experiments/scaler_comparison/regimes.h"
#include "experiments/training/reference_check.h"
#include "fp16/names.h"
#include "sim/schedules/registry.h"

using namespace experiments::scaler_comparison;
using experiments::variance_of_pixels;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double undefined = std::numeric_limits<double>::quiet_NaN();

/// log2 S of each step; `events` has a letter a step: d disturbed, s skipped, b both.
std::vector<ScaleStep> trace(const std::vector<double>& scales, const std::string& events) {
  REQUIRE(scales.size() == events.size());
  std::vector<ScaleStep> steps;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const char event = events[i];
    steps.push_back({.scale_log2 = scales[i],
                     .disturbed = event == 'd' || event == 'b',
                     .skipped = event == 's' || event == 'b'});
  }
  return steps;
}

void check(const std::vector<Recovery>& found, const std::vector<Recovery>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("recovery ", i);
    CHECK(found[i].step == expected[i].step);
    CHECK(found[i].steps == expected[i].steps);
    CHECK(found[i].complete == expected[i].complete);
  }
}

TrainingRun run_of(Regime regime, const std::string& strategy, std::vector<sim::StepRecord> steps,
                   double final_loss) {
  TrainingRun run{
      .regime = regime, .strategy = strategy, .policy = "amp", .scaler = strategy, .label = strategy};
  run.steps = std::move(steps);
  run.result.values = {{"final_loss", final_loss}, {"final_scale_log2", 3}, {"mean_relative_error", 0.25}};
  return run;
}

sim::StepRecord skipped_step(std::size_t step, sim::SkipRecord::Place place, bool twin_finite) {
  sim::StepRecord record{.step = step, .scale = 16, .decision = sim::Decision::skip};
  record.skip = sim::SkipRecord{.step = step, .place = place, .twin_finite = twin_finite};
  return record;
}

}  // namespace

TEST_CASE("recoveries: steps with S an octave or more lower after what befell the run") {
  // Step 1 halves S, which three steps later has doubled again; skipped at the lower S, step 2 finds no lower one.
  check(recoveries(trace({8, 8, 7, 7, 7, 8}, ".b...."), 8), {{.step = 1, .steps = 3}});
  check(recoveries(trace({8, 8, 7, 7, 7, 8}, "..s..."), 8), {{.step = 2, .steps = 0}});
  // S that does not move, or down by less than an octave, or up, is never too low.
  check(recoveries(trace({8, 8, 8, 8}, "d..d"), 8), {{.step = 0, .steps = 0}, {.step = 3, .steps = 0}});
  check(recoveries(trace({8, 7.25, 8}, "d.."), 8), {{.step = 0, .steps = 0}});
  check(recoveries(trace({8, 9, 8}, "d.."), 8), {{.step = 0, .steps = 0}});
}

TEST_CASE("recoveries: what happens meanwhile belongs to the recovery that goes on") {
  check(recoveries(trace({8, 7, 6, 7, 7.5, 8, 8}, "s.s...s"), 8),
        {{.step = 0, .steps = 3}, {.step = 6, .steps = 0}});
}

TEST_CASE("recoveries: of one that the end cuts off the steps so far count") {
  check(recoveries(trace({8, 7, 7, 7}, "s..."), 7), {{.step = 0, .steps = 3, .complete = false}});
  check(recoveries(trace({8, 7, 7, 7}, "s..."), 8), {{.step = 0, .steps = 3, .complete = true}});
  check(recoveries(trace({8, 8}, ".s"), 7), {{.step = 1, .steps = 0, .complete = false}});
  CHECK(mean_recovery_steps(std::vector<Recovery>{{.step = 0, .steps = 3}, {.step = 5, .steps = 0}}) == 1.5);
  CHECK(mean_recovery_steps({}) == 0);
}

TEST_CASE("recoveries: S may fall to zero and stay there") {
  check(recoveries(trace({-149, -infinity, -infinity}, "s.s"), -infinity),
        {{.step = 0, .steps = 2, .complete = false}});
  check(recoveries(trace({-infinity, -infinity}, "d."), -infinity), {{.step = 0, .steps = 0}});
}

TEST_CASE("ranks: equal values share the mean of their places, NaN takes none, infinity is last") {
  const std::vector<double> ranks =
      shared_ranks(std::vector<double>{3, 1, undefined, 3, infinity, infinity, 2});
  const std::vector<double> expected{3.5, 1, undefined, 3.5, 5.5, 5.5, 2};
  REQUIRE(ranks.size() == expected.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    INFO(i);
    CHECK((std::isnan(expected[i]) ? std::isnan(ranks[i]) : ranks[i] == expected[i]));
  }
}

TEST_CASE("ranks: every criterion that applies counts the same") {
  const std::vector<Standing> found = standings(std::vector<CriterionValues>{
      {0.1, 5, undefined, 1}, {0.2, 0, 7, 1}, {infinity, infinity, infinity, infinity}, {0.3, 0, 9, 2}});
  // Places by criterion: 1 2 4 3, then 3 1.5 4 1.5, then - 1 3 2, then 1.5 1.5 4 3.
  CHECK(found[0].mean_of_ranks == doctest::Approx((1 + 3 + 1.5) / 3).epsilon(1e-15));
  CHECK(found[1].mean_of_ranks == (2 + 1.5 + 1 + 1.5) / 4);
  CHECK(found[2].mean_of_ranks == 3.75);
  CHECK(found[3].mean_of_ranks == (3 + 1.5 + 2 + 3) / 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(found[i].rank == std::vector<double>{2, 1, 4, 3}[i]);
}

TEST_CASE("outcome: lost are skips that a scale would have saved, and steps that were never made") {
  using Place = sim::SkipRecord::Place;
  const TrainingRun run = run_of(Regime::poisoned, "dynamic",
                                 {{.step = 0, .scale = 16},
                                  skipped_step(1, Place::gradient, true),   // for its scale
                                  skipped_step(2, Place::forward, false),   // at any scale
                                  skipped_step(3, Place::gradient, false),  // likewise
                                  skipped_step(4, Place::nowhere, false),   // by a rule
                                  {.step = 5, .scale = 8}},
                                 0.5);
  const RunOutcome outcome = outcome_of(run, 10, {.every = 3});
  CHECK(outcome.skipped_steps == 4);
  CHECK(outcome.unsavable_steps == 2);
  CHECK(outcome.lost_steps == 6);
  CHECK(outcome.lowest_scale_log2 == 3);
  CHECK(outcome.highest_scale_log2 == 4);
  // Skips 1 to 3 leave S as it is; after 4 it is an octave lower to the end.
  CHECK(outcome.recoveries.size() == 4);
  CHECK(outcome.values == CriterionValues{0.25, 6, 0.25, 0.5});
}

TEST_CASE("outcome: without a finite loss all is worst, and factors of layers or casts do not recover") {
  const std::vector<sim::StepRecord> steps{{.step = 0}, {.step = 1}};
  for (const double value : outcome_of(run_of(Regime::calm, "none", steps, undefined), 2, {}).values)
    CHECK(value == infinity);
  for (const double value : outcome_of(run_of(Regime::calm, "delayed", steps, infinity), 2, {}).values)
    CHECK(value == infinity);
  for (const char* strategy :
       {"ada_loss", "fairscale_layerwise", "delayed:margin=1", "current", "unit_scaling"})
    CHECK(std::isnan(
        outcome_of(run_of(Regime::calm, strategy, steps, 1), 2, {}).values[criterion::recovery_steps]));
  CHECK_FALSE(std::isnan(
      outcome_of(run_of(Regime::calm, "static:scale=8", steps, 1), 2, {}).values[criterion::recovery_steps]));
}

TEST_CASE("scaler_comparison: what the mean of all images is wrong by") {
  // Pixels of 0 and 1 in one place, of 1 in the other: a variance of 1/4 and of 0.
  const sim::LabelledImages images{.pixels = {0, 255, 255, 255}, .labels = {0, 0}};
  const sim::ImageDataset data({.name = "made up",
                                .image_shape = {.channels = 1, .height = 1, .width = 2},
                                .classes = 1,
                                .training = images,
                                .test = images});
  CHECK(variance_of_pixels(data) == doctest::Approx(0.125));
}

TEST_CASE("regimes: which steps are disturbed, and how") {
  const Disturbances disturbances{.every = 3, .outlier_factor = 40};
  for (std::size_t step = 0; step < 9; ++step) {
    INFO(step);
    const bool expected = step % 3 == 2;
    CHECK(is_disturbed(Regime::spiky, step, disturbances) == expected);
    CHECK(is_disturbed(Regime::poisoned, step, disturbances) == expected);
    CHECK(loss_factor(Regime::spiky, step, disturbances) == (expected ? 40 : 1));
    CHECK(std::isnan(loss_factor(Regime::poisoned, step, disturbances)) == expected);
    for (const Regime regime : {Regime::calm, Regime::drifting}) {
      CHECK_FALSE(is_disturbed(regime, step, disturbances));
      CHECK(loss_factor(regime, step, disturbances) == 1);
    }
  }
}

TEST_CASE("regimes: the learning rate drops once, in the middle of what the warm-up leaves") {
  struct Case {
    std::string schedule;
    int steps;
    std::uint64_t drop;  ///< the first step (from 0) of the lower rate
    double factor_before;
  };
  for (const auto& [schedule, steps, drop, factor_before] :
       {Case{"constant", 500, 250, 1}, Case{"constant", 7, 4, 1}, Case{"cosine:warmup_steps=50", 500, 275, 1},
        Case{"linear:warmup_steps=1000", 20, 15, 1}, Case{"constant", 1, 1, 1}}) {
    INFO(schedule, ", ", steps);
    const auto [name, given] = names::parse_numeric_spec(drifting_schedule(schedule, steps, 0.125));
    const auto rule = sim::make_schedule(name, given);
    const auto total = static_cast<std::uint64_t>(steps);
    const auto factor = [&](std::uint64_t step) { return rule->factor({.applied = step, .total = total}); };
    if (drop > 0) CHECK(factor(drop - 1) == factor_before);
    for (std::uint64_t step = drop; step < total; ++step) CHECK(factor(step) == 0.125);
  }
  CHECK(drifting_schedule("linear:counts_skipped_steps=1", 100, 0.5).find("counts_skipped_steps=1") !=
        std::string::npos);
}

TEST_CASE("regimes: lists of names") {
  CHECK(parse_regimes("calm") == std::vector{Regime::calm});
  CHECK(parse_regimes("poisoned,spiky") == std::vector{Regime::poisoned, Regime::spiky});
  CHECK(parse_regimes("all") == std::vector{Regime::calm, Regime::spiky, Regime::drifting, Regime::poisoned});
  for (const char* wrong : {"", "spikey", "spiky,", "spiky,spiky", "all,calm"}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_regimes(wrong), std::invalid_argument);
  }
  CHECK_THROWS_WITH(
      parse_regimes("spikey"),
      "--regimes: unknown regime 'spikey'; did you mean 'spiky'? allowed: calm, spiky, drifting, poisoned");
}
