#include "sim/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/data/registry.h"
#include "sim/loss_scaling/registry.h"
#include "sim/optimizers/registry.h"

namespace {

const sim::Dataset& digits() {
  static const sim::Dataset dataset = sim::load_dataset("builtin");
  return dataset;
}

struct Setup {
  std::string model = "mlp";
  std::string policy = "amp";
  std::string scaler = "dynamic";
  sim::GivenOptions scaler_options = {};
  std::size_t batch = 16;
  std::size_t twin_every = 0;
};

struct Run {
  std::unique_ptr<sim::Model> model;
  sim::Trainer trainer;
  std::vector<sim::StepRecord> steps = {};
};

Run run(const Setup& setup, int steps) {
  const sim::ModelRow& row = sim::find_model(setup.model);
  std::unique_ptr<sim::Model> model = row.make(digits());
  const sim::Model& borrowed = *model;
  Run result{
      .model = std::move(model),
      .trainer = sim::Trainer(borrowed, digits(), sim::find_precision_policy(setup.policy),
                              sim::make_scaler(setup.scaler, setup.scaler_options),
                              sim::make_optimizer(row.optimizer, {{"learning_rate", row.learning_rate}}),
                              {.batch = setup.batch, .seed = 3, .twin_every = setup.twin_every})};
  for (int step = 0; step < steps; ++step) result.steps.push_back(result.trainer.step());
  return result;
}

bool same_weights(const sim::Trainer& a, const sim::Trainer& b) {
  for (std::size_t i = 0; i < a.weights().size(); ++i) {
    if (a.weights()[i].to_floats() != b.weights()[i].to_floats()) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("trainer: every model learns under every policy, in the policy's own storage") {
  for (const sim::ModelRow& model : sim::models()) {
    for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
      const bool slow_to_start = model.name == "autoencoder";
      const Run r = run({.model = std::string(model.name),
                         .policy = std::string(policy.name),
                         .scaler = "static",
                         .scaler_options = {{"scale", 128}}},
                        slow_to_start ? 40 : 25);
      INFO(model.name, " ", policy.name, ": ", r.steps.front().loss, " -> ", r.steps.back().loss);
      CHECK(r.steps.back().loss < 0.8f * r.steps.front().loss);
      CHECK(r.trainer.weights().front().format() == policy.weights);
      CHECK(std::ranges::none_of(r.steps, &sim::StepRecord::skipped));
    }
  }
}

TEST_CASE("trainer: two runs of the same seed are the same, bit for bit") {
  const Run a = run({}, 10), b = run({}, 10);
  CHECK(same_weights(a.trainer, b.trainer));
  for (std::size_t i = 0; i < a.steps.size(); ++i) CHECK(a.steps[i].loss == b.steps[i].loss);
}

TEST_CASE("trainer: measuring a step against its twin changes nothing in it") {
  CHECK(same_weights(run({.twin_every = 3}, 10).trainer, run({.twin_every = 0}, 10).trainer));
}

TEST_CASE("trainer: in FP32 a power-of-two scale changes no bit, and run and twin are equal") {
  const Run scaled =
      run({.policy = "fp32", .scaler = "static", .scaler_options = {{"scale", 1024}}, .twin_every = 4}, 10);
  const Run plain = run({.policy = "fp32", .scaler = "none"}, 10);
  CHECK(same_weights(scaled.trainer, plain.trainer));
  const sim::TwinComparison twin = sim::total_of(scaled.steps[4].twin);
  CHECK(twin.nonzero > 0);
  CHECK(twin.error_square == 0);
  CHECK(twin.flushed == 0);
}

TEST_CASE("trainer: an overflowing step is skipped and leaves weights and optimizer untouched") {
  const double far_too_large = 0x1p40;
  const Run overflowing =
      run({.model = "autoencoder", .scaler = "static", .scaler_options = {{"scale", far_too_large}}}, 3);
  const Run untouched = run({.model = "autoencoder"}, 0);
  CHECK(std::ranges::all_of(overflowing.steps, &sim::StepRecord::skipped));
  CHECK(same_weights(overflowing.trainer, untouched.trainer));

  // dynamic from the same scale: after the last skipped step it does what a run that starts there does.
  const Run dynamic = run({.scaler_options = {{"init_scale", far_too_large}}, .twin_every = 1}, 40);
  const auto first_applied = std::ranges::find(dynamic.steps, false, &sim::StepRecord::skipped);
  REQUIRE(first_applied != dynamic.steps.begin());
  REQUIRE(first_applied != dynamic.steps.end());
  CHECK(first_applied->scale == std::ldexp(static_cast<float>(far_too_large),
                                           -static_cast<int>(first_applied - dynamic.steps.begin())));
  CHECK(sim::total_of(dynamic.steps.front().twin).overflow > 0);
  CHECK(sim::total_of(first_applied->twin).nonfinite == 0);
}

TEST_CASE("trainer: unscaled FP16 loses gradients that a scale keeps") {
  const Run plain = run({.model = "autoencoder", .scaler = "none", .batch = 512, .twin_every = 1}, 2);
  const Run scaled = run({.model = "autoencoder", .scaler = "static", .batch = 512, .twin_every = 1}, 2);
  const sim::TwinComparison without = sim::total_of(plain.steps.front().twin);
  const sim::TwinComparison with = sim::total_of(scaled.steps.front().twin);
  CHECK(without.nonzero == with.nonzero);
  CHECK(without.fraction_flushed() > 0.3);
  CHECK(with.fraction_flushed() < without.fraction_flushed() / 2);
  CHECK(without.flushed_at_cast <= without.flushed);
  // The activation gradient of the first encoder vanishes whole: its largest value lies below 2^-25.
  const std::vector<sim::GradientSite>& sites = plain.trainer.sites();
  const auto encoder1 = std::ranges::find(sites, "encoder1", &sim::GradientSite::name);
  REQUIRE(encoder1 != sites.end());
  const sim::TwinComparison& vanished =
      plain.steps.front().twin[static_cast<std::size_t>(encoder1 - sites.begin())];
  CHECK(vanished.octaves_alive() < 0);
  CHECK(vanished.flushed == vanished.nonzero);
}

TEST_CASE("trainer: evaluation covers the whole test set") {
  const Run r = run({.policy = "fp32", .scaler = "none", .batch = 64}, 60);
  const sim::Evaluation evaluation = sim::evaluate(*r.model, digits(), r.trainer.weights());
  CHECK(evaluation.accuracy > 0.5);
  CHECK(evaluation.loss < 2);
  CHECK(std::round(evaluation.accuracy * static_cast<double>(digits().test_size())) ==
        doctest::Approx(evaluation.accuracy * static_cast<double>(digits().test_size())));
}
