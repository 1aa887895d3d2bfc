#include "sim/loss_scaling/adaptive_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/sim/loss_scaling/scaler_traces.h"

using scaler_traces::histogram_of;
using sim::AdaptiveScaler;
using sim::Decision;

namespace {

/// What a step's gradients are: powers of two by their exponents, and what makes the run go wrong besides.
struct Step {
  std::vector<int> exponents;
  bool nan_in_run = false;   ///< a NaN in the run, whatever the scale
  bool nan_in_twin = false;  ///< one in the twin as well
};

const Step zeros{};
const Step incurable{.exponents = {-20}, .nan_in_run = true, .nan_in_twin = true};

using Trace = std::vector<int>;

/// Plays the trainer: gradients are scaled and cast to binary16, and a twin is run when it is wanted.
class Training {
 public:
  explicit Training(const sim::AdaptiveOptions& options = {}) : scaler(options) {}

  Trace follow(const std::vector<Step>& steps) {
    Trace log2_scales;
    for (const Step& step : steps) log2_scales.push_back(take(step));
    return log2_scales;
  }

  AdaptiveScaler scaler;
  int skipped = 0;
  int twins = 0;

 private:
  static float as_half(float x) { return x >= 65520 ? INFINITY : x <= 0x1p-25F ? 0.0f : x; }

  int take(const Step& step) {
    std::vector<float> scaled_values, values;
    for (const int exponent : step.exponents) {
      scaled_values.push_back(as_half(std::ldexp(scaler.scale(), exponent)));
      values.push_back(std::ldexp(1.0f, exponent));
    }
    if (step.nan_in_run) scaled_values.push_back(NAN);
    if (step.nan_in_twin) values.push_back(NAN);
    const fp16::ExponentHistogram run = histogram_of(scaled_values), unscaled = histogram_of(values);
    const sim::TwinSummary twin{.finite = !step.nan_in_twin, .exponents = &unscaled};
    sim::GradientSummary summary{.found_nonfinite = run.infinite() + run.nan() > 0, .exponents = &run};
    if (scaler.wants_twin(summary)) {
      summary.twin = &twin;
      ++twins;
    }
    const Decision decision = scaler.update(summary);
    CHECK(decision == (summary.found_nonfinite ? Decision::skip : Decision::apply));
    skipped += decision == Decision::skip;
    return std::ilogb(scaler.scale());
  }
};

std::vector<Step> repeated(const Step& step, int times) {
  return std::vector<Step>(static_cast<std::size_t>(times), step);
}

}  // namespace

// A largest gradient of 2^e has the limit 15 - e (2^15 <= 65504 < 2^16), so that with headroom 2 the scale is
// 2^(13 - e).

TEST_CASE("adaptive learns the scale from the first step, without skipping") {
  Training training;
  CHECK(training.scaler.scale() == 1);
  CHECK(training.follow({{{-20, -22}}}) == Trace{33});
  CHECK(training.skipped == 0);
}

TEST_CASE("adaptive learns the scale from the twin where the run has flushed every gradient") {
  Training training({.max_log2_scale = 60});
  CHECK(training.follow({{{-40, -50}}, {{-40, -50}}}) == Trace{53, 53});
  CHECK(training.skipped == 0);
}

TEST_CASE("adaptive: a larger gradient lowers the scale at once and holds it for the window") {
  Training training({.window = 3});
  // limits: 35 | 35 33 | 35 33 35 | 33 35 35 | 35 35 35 ; minus 2
  CHECK(training.follow({{{-20}}, {{-18}}, {{-20}}, {{-20}}, {{-20}}}) == Trace{33, 31, 31, 31, 33});
}

TEST_CASE("adaptive: a smaller gradient raises the scale once the window has forgotten the larger ones") {
  Training training({.window = 2});
  // limits: 20 | 20 21 | 21 22 | 22 22
  CHECK(training.follow({{{-5}}, {{-6}}, {{-7}}, {{-7}}}) == Trace{18, 18, 19, 20});
}

TEST_CASE("adaptive: one overflow is enough to find the right scale, however far it was") {
  Training training({.window = 3});
  // the twin of 2^-8 has the limit 23
  CHECK(training.follow({{{-20}}, {{-8}}, {{-8}}, {{-20}}, {{-20}}, {{-20}}}) ==
        Trace{33, 21, 21, 21, 21, 33});
  CHECK(training.skipped == 1);
}

TEST_CASE("adaptive: an overflow that the twin's size does not explain costs headroom + 1 octaves a time") {
  Training training({.window = 2});
  const Step in_sums{.exponents = {-20}, .nan_in_run = true};  // limit: log2 S - 1
  CHECK(training.follow({{{-20}}, in_sums, in_sums, {{-20}}, {{-20}}}) == Trace{33, 30, 27, 27, 33});
}

TEST_CASE("adaptive: an overflow far below the twin's limit does not lower the scale any more") {
  const Step in_sums{.exponents = {-20}, .nan_in_run = true};  // the twin's limit is 35
  Training training({.max_gap = 6});
  CHECK(training.follow({{{-20}}, in_sums, in_sums, in_sums, in_sums}) == Trace{33, 30, 27, 27, 27});
  Training from_the_start;
  CHECK(from_the_start.follow(repeated(in_sums, 50)) == Trace(50, 0));
  Training with_doubt({.max_gap = 35});
  CHECK(with_doubt.follow(repeated(in_sums, 4)) == Trace{-3, -3, -3, -3});
}

TEST_CASE("adaptive: a NaN that no scale cures leaves the scale where it is, and nothing behind") {
  Training training;
  training.follow({{{-20}}, {{-18}}});
  const names::NamedValues before = training.scaler.state();
  CHECK(training.follow(repeated(incurable, 500)) == Trace(500, 31));
  CHECK(training.skipped == 500);
  names::NamedValues after = training.scaler.state();
  CHECK(after[1].first == "steps_until_twin");
  after[1].second = before[1].second;
  CHECK(after == before);
  CHECK(training.follow({{{-20}}}) == Trace{31});
}

TEST_CASE("adaptive: a run that starts with NaNs learns its scale from the first step without") {
  Training training;
  CHECK(training.follow({incurable, incurable, {{-40}}}) == Trace{0, 0, 40});
  CHECK(training.twins == 3);
}

TEST_CASE("adaptive: NaNs in between do not disturb what an overflow teaches") {
  Training training;
  CHECK(training.follow({{{-20}}, incurable, {{-8}}, incurable, incurable, {{-8}}}) ==
        Trace{33, 33, 21, 21, 21, 21});
}

TEST_CASE("adaptive gives up rare steps where the small gradients are worth more, and only there") {
  const Step usual{{-20, -45}};   // limit 35
  const Step outlier{{-2, -45}};  // limit 17
  Training training({.window = 4});
  // At 2^15 nothing overflows and half of the gradients are flushed; at 2^33 the outliers overflow, which are
  // a quarter, a half (equal losses: the larger scale), three quarters of the steps.
  CHECK(training.follow({usual, usual, usual, outlier, outlier, outlier}) == Trace{33, 33, 33, 33, 33, 15});
  CHECK(training.skipped == 3);
  // One gradient in ten: 2^33 costs 1/4 to save 1/10.
  const Step mostly_large{{-20, -20, -20, -20, -20, -20, -20, -20, -20, -45}};
  const Step large_outlier{{-2, -2, -2, -2, -2, -2, -2, -2, -2, -45}};
  Training careful({.window = 4});
  CHECK(careful.follow({mostly_large, mostly_large, mostly_large, large_outlier}) == Trace{33, 33, 33, 15});
}

TEST_CASE("adaptive wants a twin at first, then twin_every steps after the last, and at every overflow") {
  const Step usual{{-20}};
  Training training({.twin_every = 3});
  training.follow(repeated(usual, 7));  // steps 0, 3, 6
  CHECK(training.twins == 3);
  training.follow({usual, {{-8}}});  // step 8 overflows
  CHECK(training.twins == 4);
  training.follow({usual, usual});
  CHECK(training.twins == 4);
  training.follow({usual});  // step 11
  CHECK(training.twins == 5);
}

TEST_CASE("adaptive: gradients that are all zero leave the scale alone") {
  Training training;
  CHECK(training.follow({zeros, zeros, {{-4}}, zeros, zeros}) == Trace{0, 0, 17, 17, 17});
}

TEST_CASE("adaptive: the scale stays within its limits") {
  Training training({.window = 1, .min_log2_scale = 3, .max_log2_scale = 10});
  CHECK(training.scaler.scale() == 8);
  CHECK(training.follow({{{-20}}, {{20}}, {{20}}, {{-20}}}) == Trace{10, 3, 3, 10});
  Training below_one({.window = 1});
  CHECK(below_one.follow({{{18}}, {{18}}, {{100}}}) == Trace{-5, -5, -24});
}

TEST_CASE("adaptive: the headroom is the stated one") {
  for (const int headroom : {0, 1, 5, 15}) {
    Training training({.headroom = headroom});
    CHECK(training.follow({{{-20}}}) == Trace{35 - headroom});
  }
}

TEST_CASE("adaptive: with no headroom the largest value lands on 65504 at most, short of the overflow edge") {
  const auto scale_after = [](float largest) {
    const fp16::ExponentHistogram exponents = histogram_of({{largest}});
    const sim::TwinSummary twin{.exponents = &exponents};
    AdaptiveScaler scaler({.headroom = 0});
    scaler.update({.exponents = &exponents, .twin = &twin});
    return scaler.scale();
  };
  CHECK(scale_after(0x1.ffcp-10F) == 0x1p25F);  // 2^25 times it is 65504
  CHECK(scale_after(0x1.ffep-10F) == 0x1p24F);  // 2^25 times it is 65520
}

TEST_CASE("adaptive: an infinite activation gradient that no weight gradient shows still lowers the scale") {
  Training training;
  training.follow({{{-20}}});
  const fp16::ExponentHistogram run = histogram_of({{INFINITY, 1.0f}});
  const fp16::ExponentHistogram unscaled = histogram_of({{0x1p-10F, 0x1p-33F}});
  const sim::TwinSummary twin{.exponents = &unscaled};
  const sim::GradientSummary summary{.found_nonfinite = false, .exponents = &run, .twin = &twin};
  CHECK(training.scaler.wants_twin(summary));
  CHECK(training.scaler.update(summary) == Decision::apply);
  CHECK(training.scaler.scale() == 0x1p23F);
}

TEST_CASE("adaptive says what is missing when a step comes without exponents or without the wanted twin") {
  AdaptiveScaler scaler;
  CHECK_THROWS_WITH_AS(scaler.update({}),
                       "scaler 'adaptive': a step came without the exponents of its gradients",
                       std::invalid_argument);
  fp16::ExponentHistogram exponents;
  CHECK_THROWS_WITH_AS(scaler.update({.exponents = &exponents}),
                       "scaler 'adaptive': a step came without the twin that it wanted",
                       std::invalid_argument);
}

TEST_CASE("adaptive: impossible options are refused") {
  CHECK_THROWS_AS(AdaptiveScaler({.headroom = -1}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.headroom = 16}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.window = 0}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.twin_every = 0}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.max_gap = 0}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.min_log2_scale = -101}), std::invalid_argument);
  CHECK_THROWS_AS(AdaptiveScaler({.max_log2_scale = 101}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      AdaptiveScaler({.min_log2_scale = 5, .max_log2_scale = 4}),
      "scaler 'adaptive': min_log2_scale = 5 is not allowed; allowed: at most max_log2_scale = 4",
      std::invalid_argument);
}

TEST_CASE("adaptive: impossible state is refused and leaves the scaler as it was") {
  Training training({.window = 2, .min_log2_scale = 22, .max_log2_scale = 24});
  training.follow({{{-10, -47}}, {{-12}}});
  const names::NamedValues before = training.scaler.state();
  // 2^-47 is flushed at 2^22, where it becomes 2^-25, and not at 2^23
  CHECK(before == names::NamedValues{{"log2_scale", 23},
                                     {"steps_until_twin", 98},
                                     {"flushed_share_0", 0.5},
                                     {"flushed_share_1", 0},
                                     {"flushed_share_2", 0},
                                     {"limit_0", 25},
                                     {"limit_1", 27}});
  const auto refused = [&](const names::NamedValues& state) {
    CHECK_THROWS_AS(training.scaler.restore(state), std::invalid_argument);
    CHECK(training.scaler.state() == before);
  };
  const auto changed = [&](std::size_t entry, const std::string& name, double value) {
    names::NamedValues state = before;
    state[entry] = {name, value};
    return state;
  };
  refused({});
  refused({before.begin(), before.begin() + 4});
  refused(changed(0, "log2_scale", 25));
  refused(changed(0, "log2_scale", 22.5));
  refused(changed(0, "log2_scales", 23));
  refused(changed(1, "steps_until_twin", 100));
  refused(changed(2, "flushed_share_0", 1.5));
  refused(changed(6, "limit_2", 27));
  refused(changed(6, "limit_1", 1e6));
  names::NamedValues too_long = before;
  too_long.emplace_back("limit_2", 27);
  refused(too_long);
  training.scaler.restore({before.begin(), before.begin() + 5});
  CHECK(training.scaler.state().size() == 5);
}
