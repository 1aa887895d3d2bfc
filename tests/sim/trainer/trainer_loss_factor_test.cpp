#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "sim/statistics/twin_comparison.h"
#include "tests/sim/training_runs.h"

namespace {

training_runs::Run start(const std::string& model, const std::string& policy, const std::string& scaler) {
  return training_runs::start({.model = training_runs::small_spec(model),
                               .policy = policy,
                               .scaler = scaler,
                               .optimizer = "sgd:learning_rate=0.01",
                               .options = {.batch = 8, .seed = 3, .twin_every = 1, .record_skips = true}});
}

}  // namespace

TEST_CASE("trainer: a loss that counts 2^k-fold does what a 2^k-fold learning rate does, in every model") {
  for (const sim::ModelRow& row : sim::models()) {
    INFO(row.name);
    auto plain = training_runs::start({.model = training_runs::small_spec(row.name),
                                       .policy = "fp32",
                                       .scaler = "none",
                                       .optimizer = "sgd:learning_rate=0.04",
                                       .schedule = "constant",
                                       .options = {.batch = 8, .seed = 3, .twin_every = 1}});
    auto heavy = training_runs::start({.model = training_runs::small_spec(row.name),
                                       .policy = "fp32",
                                       .scaler = "none",
                                       .optimizer = "sgd:learning_rate=0.01",
                                       .schedule = "constant",
                                       .options = {.batch = 8, .seed = 3, .twin_every = 1}});
    const sim::StepRecord once = plain.trainer.step();
    const sim::StepRecord fourfold = heavy.trainer.step(4);
    CHECK(fourfold.loss == 4 * once.loss);
    CHECK(sim::total_of(fourfold.twin).twin_norm() == 4 * sim::total_of(once.twin).twin_norm());
    CHECK(training_runs::same_state(plain.trainer.state(), heavy.trainer.state()));
  }
}

TEST_CASE("trainer: an outlier overflows at a scale that its batch alone does not") {
  auto calm = start("mlp", "amp", "static:scale=32768"), spiky = start("mlp", "amp", "static:scale=32768");
  CHECK_FALSE(calm.trainer.step().skipped());
  const sim::StepRecord outlier = spiky.trainer.step(1024);
  REQUIRE(outlier.skipped());
  CHECK(outlier.skip->is_scale_dependent());
}

TEST_CASE("trainer: no scale saves a loss that is NaN, and what skips it keeps its weights") {
  const float poison = std::numeric_limits<float>::quiet_NaN();
  auto run = start("autoencoder", "amp", "dynamic");
  const auto untouched = start("autoencoder", "amp", "dynamic");
  const sim::StepRecord step = run.trainer.step(poison);
  CHECK(std::isnan(step.loss));
  REQUIRE(step.skipped());
  CHECK(step.skip->place == sim::SkipRecord::Place::forward);
  CHECK_FALSE(step.skip->is_scale_dependent());
  CHECK(training_runs::same_state(run.trainer.state(), untouched.trainer.state()));
  CHECK_FALSE(run.trainer.step().skipped());
}

TEST_CASE("trainer: several losses with a scaler each count as many times, each of them") {
  auto run = start("ssd", "amp", "apex_amp:num_losses=2:init_scale=1");
  auto heavy = start("ssd", "amp", "apex_amp:num_losses=2:init_scale=1");
  const double norm = sim::total_of(run.trainer.step().twin).twin_norm();
  CHECK(sim::total_of(heavy.trainer.step(4).twin).twin_norm() == 4 * norm);
}
