#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "experiments/master_weights/conditions.h"
#include "experiments/master_weights/findings.h"
#include "experiments/master_weights/ratio_histogram.h"
#include "experiments/master_weights/storage.h"
#include "fp16/formats.h"
#include "sim/precision/precision_policy.h"

namespace {

using namespace experiments::master_weights;
using experiments::TrainingOptions;
using experiments::TrainingSetup;

/// The share by trying every significand of the format, weighted by its density, with d = m/ratio away from
/// zero: a unit in the last place is 1, so that sums are rounded to integers.
double share_by_trial(double ratio, const WeightStorage& storage, Significands significands) {
  const int units = 1 << (storage.format.precision - 1);
  double lost = 0, all = 0;
  for (int m = units; m < 2 * units; ++m) {
    const double weight = significands == Significands::uniform ? 1.0 : 1.0 / (m + 0.5);
    const double d = (m + 0.5) / ratio;
    const double chance = storage.rounding == fp16::Rounding::nearest_even
                              ? (std::nearbyint(m + d) == m ? 1.0 : 0.0)
                              : std::max(0.0, 1 - d);
    lost += weight * chance;
    all += weight;
  }
  return lost / all;
}

sim::Tensor tensor(const std::vector<float>& values, fp16::Format format) {
  return sim::rounded(sim::Tensor::from({values.size()}, values), format);
}

struct SmallNetwork {
  TrainingOptions training{.model = "mlp:hidden1=16:hidden2=8",
                           .optimizer = "adam",
                           .learning_rate = 1e-4,
                           .batch = 16,
                           .steps = 8};
  TrainingSetup setup{training};
};

/// A run that ended with that loss, after three periods of ten steps.
TrainingRun made(double loss, double progress) {
  TrainingRun run;
  run.evaluation = {.loss = loss, .accuracy = loss / 10};
  for (std::size_t step = 0; step < 30; step += 10) {
    sim::TwinComparison changes;
    changes.nonzero = 1;
    changes.twin_square = 4;
    changes.product = 4 * progress;
    changes.run_square = 16;
    run.periods.push_back(
        {.step = step, .updates = {.updates = 10, .swallowed = step / 10}, .changes = changes});
  }
  return run;
}

}  // namespace

TEST_CASE("master_weights: storages differ in the stored weights alone") {
  REQUIRE(storages[masters].name == "masters");
  const auto expected = sim::roles_of(policy_of(storages[masters]));
  for (std::size_t i = masters; i < storages.size(); ++i) {
    const auto roles = sim::roles_of(policy_of(storages[i]));
    REQUIRE(roles.size() == expected.size());
    for (std::size_t role = 0; role < roles.size(); ++role) {
      if (roles[role].first == "weights" || roles[role].first == "weight_rounding") continue;
      CHECK(roles[role] == expected[role]);
    }
  }
  CHECK(policy_of(storages[masters]).model == fp16::binary16);
  CHECK(policy_of(storages[masters]).weights == fp16::binary32);
  CHECK(policy_of(storages[fp16_nearest]).weights == fp16::binary16);
  CHECK(policy_of(storages[bf16_stochastic]).weight_rounding == fp16::Rounding::stochastic);
  CHECK(policy_of(storages[reference]).model == fp16::binary32);
}

TEST_CASE("master_weights: the expected share is that of all significands tried one by one") {
  for (const std::size_t i : {fp16_nearest, fp16_stochastic, bf16_nearest, bf16_stochastic}) {
    const int precision = storages[i].format.precision;
    const double resolution = std::ldexp(2.0, -precision);
    for (int eighth = -16; eighth <= 40; ++eighth) {
      const double ratio = std::ldexp(std::exp2(eighth / 8.0), precision);
      for (const Significands law : {Significands::uniform, Significands::logarithmic}) {
        INFO(storages[i].name, " at ", ratio);
        CHECK(std::fabs(expected_swallowed_share(ratio, storages[i], law) -
                        share_by_trial(ratio, storages[i], law)) < 1.5 * resolution);
      }
    }
  }
  const WeightStorage& fp16 = storages[fp16_nearest];
  for (const Significands law : {Significands::uniform, Significands::logarithmic}) {
    CHECK(expected_swallowed_share(2048, fp16, law) == 0);
    CHECK(expected_swallowed_share(4096, fp16, law) == 1);
    CHECK(expected_swallowed_share(1, fp16, law) == 0);
    CHECK(expected_swallowed_share(0x1p60, fp16, law) == 1);
  }
  CHECK(expected_swallowed_share(3072, fp16, Significands::uniform) == 0.5);
  CHECK(expected_swallowed_share(2048, storages[fp16_stochastic], Significands::uniform) == 0.25);
}

TEST_CASE("master_weights: ratios fall into bins with exact borders") {
  RatioHistogram ratios;
  ratios.add(-2048, 1, false);
  ratios.add(std::nextafter(2048.0, 0), 1, false);
  ratios.add(2304, -1, true);  // 2^11 (1 + 1/8)
  ratios.add(0.5, 1, false);
  ratios.add(1, 0x1p-60, true);
  const std::size_t bin = 11 * RatioHistogram::bins_per_octave;
  CHECK(RatioHistogram::lower_border(bin) == 2048);
  CHECK(RatioHistogram::lower_border(bin + 1) == 2304);
  CHECK(RatioHistogram::lower_border(0) == 1);
  using Bin = RatioHistogram::Bin;
  CHECK(ratios.bins()[bin - 1] == Bin{1, 0});
  CHECK(ratios.bins()[bin] == Bin{1, 0});
  CHECK(ratios.bins()[bin + 1] == Bin{1, 1});
  CHECK(ratios.bins().front() == Bin{1, 0});
  CHECK(ratios.bins().back() == Bin{1, 1});
  CHECK(ratios.sum(11, 12) == Bin{2, 1});
  ratios += ratios;
  CHECK(ratios.sum(0, RatioHistogram::octaves) == Bin{10, 4});
}

TEST_CASE("master_weights: what becomes of updates, by hand") {
  // Swallowed at 2^-12, doubled at 3/2 of half a spacing, kept, no update at all, and of a zero and a subnormal
  // weight.
  const sim::Tensor before = tensor({1, 1, 2, 4, 0, 0x1p-20f}, fp16::binary16);
  const sim::Tensor after = tensor({1, 1 + 0x1p-10f, 1, 4, 0x1p-24f, 0x1p-20f}, fp16::binary16);
  const sim::Tensor exact =
      tensor({1 + 0x1p-12f, 1 + 0x1.8p-11f, 1, 4, 0x1p-24f, 0x1p-20f + 0x1p-26f}, fp16::binary64);
  const MeasuredUpdates updates = measure_updates({.before = before, .after = after, .exact = exact});
  CHECK(updates.changes.nonzero == 5);
  CHECK(updates.changes.flushed == 2);
  const double exact_square = 0x1p-24 + 0x1.2p-21 + 1 + 0x1p-48 + 0x1p-52;
  CHECK(updates.changes.twin_square == doctest::Approx(exact_square).epsilon(1e-15));
  CHECK(progress_share(updates.changes) ==
        doctest::Approx((0x1.8p-21 + 1 + 0x1p-48) / exact_square).epsilon(1e-15));
  CHECK(norm_ratio(updates.changes) ==
        doctest::Approx(std::sqrt((0x1p-20 + 1 + 0x1p-48) / exact_square)).epsilon(1e-15));
  CHECK(updates.ratios.sum(0, RatioHistogram::octaves) == RatioHistogram::Bin{3, 1});
  CHECK(updates.ratios.sum(12, 13) == RatioHistogram::Bin{1, 1});
  CHECK(updates.exact_exponents.nonzero_finite() == 5);
  CHECK(fraction_below_smallest_subnormal(updates.exact_exponents) == doctest::Approx(0.2));
  CHECK(updates.exact_exponents.flushed_at_scale(0) == 1);
}

TEST_CASE("master_weights: a measured step is an ordinary one, held against its exact update") {
  const SmallNetwork network;
  for (const WeightStorage& storage : storages) {
    INFO(storage.name);
    const sim::PrecisionPolicy policy = policy_of(storage);
    const experiments::RunChoice choice{.scaler = "static:scale=1024", .seed = 3};
    sim::Trainer plain = network.setup.trainer(choice, policy);
    sim::Trainer trainer = network.setup.trainer(choice, policy);
    for (int step = 0; step < 4; ++step) {
      const MeasuredStep measured = measured_step(trainer, network.setup.model(), policy, choice.seed);
      const sim::StepRecord record = plain.step();
      CHECK(measured.record.loss == record.loss);
      REQUIRE(measured.updates.has_value());
      // Counted by the optimizer itself, whose arithmetic is binary32.
      const sim::TwinComparison& changes = measured.updates->changes;
      CHECK(std::fabs(static_cast<double>(changes.nonzero) - static_cast<double>(record.updates.updates)) <=
            2);
      CHECK(std::fabs(static_cast<double>(changes.flushed) - static_cast<double>(record.updates.swallowed)) <=
            2);
      const int precision = storage.format.precision;
      CHECK(measured.updates->ratios.sum(0, precision - 1).swallowed == 0);
      if (storage.rounding == fp16::Rounding::nearest_even) {
        CHECK(measured.updates->ratios.sum(0, precision).swallowed == 0);
        const RatioHistogram::Bin beyond =
            measured.updates->ratios.sum(precision + 1, RatioHistogram::octaves);
        CHECK(beyond.swallowed == beyond.updates);
      }
      if (storage.format == fp16::binary32) {
        CHECK(progress_share(changes) == doctest::Approx(1).epsilon(1e-4));
        CHECK(changes.cosine() == doctest::Approx(1).epsilon(1e-4));
      }
    }
    for (std::size_t i = 0; i < trainer.state().weights.size(); ++i)
      CHECK(trainer.state().weights[i].to_floats() == plain.state().weights[i].to_floats());
  }
}

TEST_CASE("master_weights: stochastic rounding goes the whole way on average, to nearest does not") {
  const SmallNetwork network;
  experiments::Progress progress("", 1, nullptr);
  const auto mean_progress = [&](std::size_t storage) {
    double sum = 0;
    const TrainingRun run =
        train(network.setup, {.storage = storages[storage], .loss_scale_log2 = 10}, progress);
    REQUIRE(run.periods.size() == 8);
    for (const Period& period : run.periods) sum += progress_share(period.changes.value());
    return sum / 8;
  };
  CHECK(mean_progress(masters) == doctest::Approx(1).epsilon(1e-4));
  CHECK(mean_progress(bf16_stochastic) == doctest::Approx(1).epsilon(0.05));
  CHECK(mean_progress(bf16_nearest) < 0.6);
}

TEST_CASE("master_weights: periods cover every step, whatever their length") {
  const SmallNetwork network;
  experiments::Progress progress("", 1, nullptr);
  const auto run = [&](int measure_every) {
    return train(network.setup, {.storage = storages[fp16_nearest], .measure_every = measure_every},
                 progress);
  };
  const TrainingRun every = run(1), third = run(3);
  REQUIRE(third.periods.size() == 3);
  CHECK(third.periods[2].step == 6);
  CHECK(third.evaluation.loss == every.evaluation.loss);
  CHECK(third.periods[2].training_loss ==
        doctest::Approx((every.periods[6].training_loss + every.periods[7].training_loss) / 2));
  sim::UpdateCounts all, sum;
  for (const Period& period : every.periods) all += period.updates;
  for (const Period& period : third.periods) sum += period.updates;
  CHECK(sum == all);
  CHECK(all.swallowed > 0);
}

TEST_CASE("master_weights: outcomes are judged in pairs of the same seed") {
  const std::vector<TrainingRun> with_masters{made(1, 1), made(2, 1), made(4, 1)};
  const std::vector<TrainingRun> worse{made(1.5, 0.25), made(2.8, 0.5), made(5.8, 0.75)};
  const Outcome outcome = outcome_of(worse, with_masters, 30);
  CHECK(outcome.loss_difference.mean == doctest::Approx(3.1 / 3));
  CHECK(outcome.relative_loss.mean == doctest::Approx(0.45));  // 0.5, 0.4 and 0.45
  CHECK(outcome.relative_loss.half_width == doctest::Approx(4.302652729911275 * 0.05 / std::sqrt(3)));
  CHECK(outcome.accuracy_difference.mean == doctest::Approx(0.31 / 3));
  CHECK(outcome.is_harmed());  // by ratios: the differences spread over 1.3, the losses over 4.3
  CHECK(outcome.progress == doctest::Approx(0.5));
  CHECK(outcome.norm_ratio == doctest::Approx(2));
  CHECK(outcome.updates == sim::UpdateCounts{.updates = 90, .swallowed = 9});
  CHECK(outcome.late_updates == sim::UpdateCounts{.updates = 30, .swallowed = 6});
  CHECK_FALSE(outcome_of(with_masters, with_masters, 30).is_harmed());
  CHECK_FALSE(outcome_of(with_masters, worse, 30).is_harmed());
  const std::vector<TrainingRun> diverged{made(1, 1), made(NAN, 1), made(4, 1)};
  CHECK(outcome_of(diverged, with_masters, 30).is_harmed());
  CHECK_FALSE(outcome_of(diverged, diverged, 30).is_harmed());
  const std::vector<TrainingRun> two(worse.begin(), worse.begin() + 2);
  CHECK_FALSE(outcome_of(two, std::span(with_masters).first(2), 30).is_harmed());
}

TEST_CASE("master_weights: a storage costs most where it alone diverges, and least where masters do too") {
  const auto conditions = make_conditions({.model = "autoencoder", .steps = 1});
  std::vector<ConditionFindings> findings;
  for (const auto& [masters_loss, fp16_loss] :
       {std::pair{double{NAN}, double{NAN}}, {1.0, 2.0}, {1.0, double{NAN}}}) {
    ConditionFindings found{.condition = conditions[findings.size()].get(),
                            .runs = {},
                            .outcomes = std::vector<Outcome>(storages.size())};
    found.outcomes[fp16_nearest].relative_loss.mean = fp16_loss / masters_loss - 1;
    found.outcomes[fp16_nearest].diverges_alone = std::isnan(fp16_loss) && !std::isnan(masters_loss);
    findings.push_back(found);
  }
  CHECK(&worst_case(findings, fp16_nearest) == &findings[2]);
  findings.pop_back();
  CHECK(&worst_case(findings, fp16_nearest) == &findings[1]);
}

TEST_CASE("master_weights: conditions are the standard ones, or what was asked for") {
  const TrainingOptions small{.model = "mlp:hidden1=4:hidden2=4", .steps = 10};
  const auto standard = make_conditions(small);
  std::vector<std::string> labels;
  for (const auto& condition : standard) labels.push_back(condition->name() + ": " + condition->label());
  CHECK(labels == std::vector<std::string>{"own: momentum 0.05", "own_hundredth: momentum 0.0005",
                                           "adam_1e-3: adam 0.001", "adam_1e-4: adam 0.0001",
                                           "adam_1e-5: adam 1e-05", "adam_cosine: adam 0.001, cosine"});
  TrainingOptions asked = small;
  asked.schedule = "linear";
  const auto given = make_conditions(asked);
  REQUIRE(given.size() == 1);
  CHECK(given.front()->name() == "given");
  CHECK(given.front()->label() == "momentum 0.05, linear");
}
