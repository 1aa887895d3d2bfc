/// Every model under every policy, and the promise that bits depend on nothing but the options.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "sim/ops/scale.h"
#include "tests/sim/training_runs.h"

namespace {

using training_runs::run;
using training_runs::Run;
using training_runs::same_state;
using training_runs::Setup;

struct Schooling {
  std::string model;
  std::string optimizer;
  std::string binary16_optimizer;  ///< where the update is computed in binary16, in which Adam's epsilon is 0
  std::size_t batch;
  int steps;
};

/// In which each model loses a fifth of its loss; a new model needs a row.
const std::map<std::string, Schooling>& schoolings() {
  const std::string gentle = "momentum:learning_rate=0.05", strong = "momentum:learning_rate=0.5";
  static const std::map<std::string, Schooling> rows{
      {"mlp", {training_runs::small_spec("mlp"), gentle, gentle, 16, 40}},
      {"autoencoder",
       {training_runs::small_spec("autoencoder"), "adam:learning_rate=0.01", "momentum:learning_rate=1", 16,
        40}},
      {"cnn", {"cnn:channels=4", "momentum:learning_rate=0.1", "momentum:learning_rate=0.1", 32, 60}},
      {"ssd",
       {training_runs::small_spec("ssd"), "momentum:learning_rate=12", "momentum:learning_rate=12", 4, 30}},
      {"transformer", {training_runs::small_spec("transformer"), "adamw:learning_rate=0.01", strong, 8, 60}},
      {"lstm", {training_runs::small_spec("lstm"), "adam:learning_rate=0.02", strong, 8, 60}},
  };
  return rows;
}

double mean_loss(std::span<const sim::StepRecord> steps) {
  double sum = 0;
  for (const sim::StepRecord& step : steps) sum += step.loss;
  return sum / static_cast<double>(steps.size());
}

}  // namespace

TEST_CASE("models: each learns under every policy, in the policy's own storage") {
  for (const sim::ModelRow& model : sim::models()) {
    REQUIRE(schoolings().contains(std::string(model.name)));
    const Schooling& schooling = schoolings().at(std::string(model.name));
    for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
      const bool in_binary16 = policy.update_operations == fp16::binary16;
      const Run r = run({.model = schooling.model,
                         .policy = std::string(policy.name),
                         .scaler = "static:scale=128",
                         .optimizer = in_binary16 ? schooling.binary16_optimizer : schooling.optimizer,
                         .schedule = "constant",
                         .options = {.batch = schooling.batch, .seed = 3}},
                        schooling.steps);
      const std::span steps(r.steps);
      INFO(model.name, " ", policy.name);
      CHECK(mean_loss(steps.last(5)) < 0.8 * mean_loss(steps.first(5)));
      CHECK(std::ranges::none_of(steps, &sim::StepRecord::skipped));
      CHECK(r.trainer.state().weights.front().format() == policy.weights);
      if (policy.name != "amp") continue;
      const sim::Evaluation evaluation = sim::evaluate(*r.model, r.data, r.trainer.state());
      CHECK(evaluation.loss > 0);
      CHECK(evaluation.accuracy >= 0);
      CHECK(evaluation.accuracy <= 1);
    }
  }
}

TEST_CASE("models: Adam's epsilon is zero in binary16, and 0/0 is what becomes of weights without gradient") {
  Setup setup{.model = training_runs::small_spec("lstm"),
              .policy = "O3",
              .scaler = "static:scale=128",
              .optimizer = "adam:learning_rate=0.02",
              .options = {.batch = 8, .seed = 3}};
  CHECK(std::isnan(run(setup, 2).steps[1].loss));
  for (const char* cured : {"O3:update_operations=binary32", "fp16"}) {
    setup.policy = cured;
    CHECK(run(setup, 2).steps[1].loss < 5);
  }
}

TEST_CASE("models: one thread and two give the same bytes, and so do two runs") {
  // Large enough that operations, updates and conversions do share their work.
  const struct {
    const char* model;
    const char* policy;
    std::size_t batch;
  } rows[]{
      {"mlp", "amp", 128},
      {"mlp", "mxfp4", 128},
      {"mlp", "fp8", 128},
      {"mlp", "fp16:activation_rounding=stochastic:gradient_rounding=stochastic:weight_rounding=stochastic",
       128},
      {"autoencoder", "O2", 256},
      {"cnn:channels=8", "amp", 32},
      {"cnn:channels=8", "O3", 32},
      {"ssd:channels=4", "amp", 16},
      {"transformer:layers=1:dropout=0.1", "amp", 32},
      {"transformer:layers=1", "fp64", 32},
      {"lstm:layers=1", "bf16", 64},
  };
  for (const auto& [model, policy, batch] : rows) {
    const auto train = [&](int threads) {
      return run({.model = model,
                  .policy = policy,
                  .scaler = "adaptive",
                  .options = {.batch = batch, .seed = 3, .twin_every = 2, .threads = threads}},
                 3);
    };
    const Run one = train(1), again = train(1), two = train(2);
    INFO(model, " ", policy);
    CHECK(same_state(one.trainer.state(), again.trainer.state()));
    CHECK(same_state(one.trainer.state(), two.trainer.state()));
    CHECK(one.trainer.scale() == two.trainer.scale());
    for (std::size_t i = 0; i < one.steps.size(); ++i) CHECK(one.steps[i].loss == two.steps[i].loss);
    for (std::size_t site = 0; site < one.steps[2].twin.size(); ++site) {
      const sim::TwinComparison &a = one.steps[2].twin[site], &b = two.steps[2].twin[site];
      CHECK(a.flushed == b.flushed);
      CHECK(a.flushed_at_cast == b.flushed_at_cast);
      CHECK(a.error_square == b.error_square);
    }
    CHECK(!same_state(one.trainer.state(), run({.model = model, .policy = policy}, 0).trainer.state()));
  }
  for (const sim::ModelRow& model : sim::models()) {
    CHECK(std::ranges::any_of(
        rows, [&](const auto& row) { return std::string_view(row.model).starts_with(model.name); }));
  }
}

namespace {

double root_mean_square(const sim::Tensor& tensor) {
  double sum = 0;
  for (const double value : values_of(tensor)) sum += value * value;
  return std::sqrt(sum / static_cast<double>(tensor.size()));
}

/// A layer's output with the multiplier that follows it.
const sim::Tensor& multiplied(const sim::Tape& tape, sim::Variable output) {
  const sim::Variable next{output.index + 1};
  return tape.value(tape.name_of(next).operation == sim::scale.name ? next : output);
}

}  // namespace

// Not 1 itself, because the rules hold for independent numbers with mean 0, and a network's are not. Outputs
// of ReLU and sigmoid have means, whose squares add to the next layer's: a ReLU makes 1.47 of a mean square of
// 1, ten in a row 46. Logits of a readout begin at 1 / sqrt(fan_in). Gradients agree from token to token, for
// most entries of a row of cross entropy's are positive, so that sums over tokens grow with their number rather
// than its root. Most anchors' boxes have no gradient. Vectors are left out: the gradient of the bias of
// attention's keys is 0.
TEST_CASE("models: under unit scaling matrices, layers and their gradients begin near 1") {
  const sim::UnitScaling rule;
  for (const sim::ModelRow& row : sim::models()) {
    const std::unique_ptr<sim::Model> model = training_runs::make_model(std::string(row.name));
    const sim::Batch batch = training_runs::data_of(row.data).test_batch(0, 10);
    const sim::RecordedStep step = sim::record_step(*model, sim::ModelState::initial(*model, 3, rule), batch,
                                                    sim::find_precision_policy("fp32"), {});
    const sim::SiteGradients gradients = step.tape.backward(step.forward.loss, {});
    for (std::size_t i = 0; i < gradients.gradients.size(); ++i) {
      const sim::GradientSite& site = step.tape.sites()[i];
      const sim::Tensor& value = step.tape.value(site.variable);
      INFO(row.name, " ", site.name);
      if (site.kind == sim::GradientSite::Kind::weight && value.shape().size() == 1) continue;
      if (site.kind == sim::GradientSite::Kind::activation) {
        const double activation = root_mean_square(multiplied(step.tape, site.variable));
        CHECK(activation > 0x1p-5);
        CHECK(activation < 0x1p3);
      }
      const double gradient = root_mean_square(gradients.gradients[i]);
      CHECK(gradient > 0x1p-4);
      CHECK(gradient < 0x1p4);
    }
  }
}

TEST_CASE("models: under unit scaling each learns with one and the same learning rate, in FP16 too") {
  for (const sim::ModelRow& row : sim::models()) {
    const Schooling& schooling = schoolings().at(std::string(row.name));
    const std::string optimizer(row.optimizer.substr(0, row.optimizer.find(':')));
    for (const char* policy : {"fp32", "amp"}) {
      const Run r = run({.model = schooling.model,
                         .policy = policy,
                         .scaler = "unit_scaling",
                         .optimizer = optimizer + ":learning_rate=0.03",
                         .schedule = "constant",
                         .options = {.batch = schooling.batch, .seed = 3}},
                        30);
      const std::span steps(r.steps);
      INFO(row.name, " ", policy);
      CHECK(mean_loss(steps.last(5)) < 0.9 * mean_loss(steps.first(5)));
      CHECK(std::ranges::none_of(steps, &sim::StepRecord::skipped));
    }
  }
}

TEST_CASE("models: unit scaling's tau weighs the branches of residual networks, and only of those") {
  for (const auto& [model, is_residual] :
       {std::pair{"mlp", false}, {"cnn", true}, {"transformer", true}, {"lstm", false}}) {
    const auto state_with = [model](const char* scaler) {
      return run({.model = training_runs::small_spec(model), .policy = "fp32", .scaler = scaler}, 1)
          .trainer.state();
    };
    INFO(model);
    CHECK(same_state(state_with("unit_scaling"), state_with("unit_scaling:tau=0.25")) != is_residual);
  }
}
