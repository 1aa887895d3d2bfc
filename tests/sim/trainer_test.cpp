#include "sim/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fp16/half.h"
#include "sim/data/registry.h"
#include "sim/loss_scaling/registry.h"
#include "sim/models/registry.h"
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

  const Run dynamic = run({.scaler_options = {{"init_scale", far_too_large}}, .twin_every = 1}, 40);
  const auto first_applied = std::ranges::find(dynamic.steps, false, &sim::StepRecord::skipped);
  REQUIRE(first_applied != dynamic.steps.begin());
  REQUIRE(first_applied != dynamic.steps.end());
  CHECK(first_applied->scale == std::ldexp(static_cast<float>(far_too_large),
                                           -static_cast<int>(first_applied - dynamic.steps.begin())));
  CHECK(sim::total_of(dynamic.steps.front().twin).overflow > 0);
  CHECK(sim::total_of(first_applied->twin).nonfinite == 0);
}

namespace {

/// Skips the first steps it sees, whatever their gradients.
class SkipFirst final : public sim::LossScaler {
 public:
  explicit SkipFirst(int count) : left_(count) {}
  std::string_view name() const override { return "skip first"; }
  float scale() const override { return 256; }
  sim::Decision update(const sim::GradientSummary&) override {
    return left_-- > 0 ? sim::Decision::skip : sim::Decision::apply;
  }
  sim::NamedValues options() const override { return {}; }
  sim::NamedValues state() const override { return {}; }
  void restore(const sim::NamedValues&) override {}

 private:
  int left_;
};

/// Adam by hand on the batches of steps `first` .. `last` - 1, from fresh weights, through the same tape.
std::vector<sim::Tensor> train_by_hand(const sim::Model& model, std::size_t first, std::size_t last) {
  const std::vector<sim::ParameterSpec> parameters = model.parameters();
  std::vector<sim::Tensor> weights = sim::initial_weights(parameters, 3);
  const std::unique_ptr<sim::Optimizer> adam = sim::make_optimizer("adam");
  sim::BatchSampler batches(digits(), 3, 16);
  for (std::size_t step = first; step < last; ++step) {
    const auto [tape, forward] =
        sim::record_step(model, parameters, weights, batches.batch(step), sim::find_precision_policy("amp"));
    const sim::SiteGradients scaled = tape.backward(forward.loss, {.seed = 256});
    adam->begin_step();
    for (std::size_t i = 0; i < weights.size(); ++i) {  // the parameters are the first sites
      std::vector<float> gradient = scaled.gradients[i].to_floats();
      for (float& g : gradient) g /= 256;
      adam->update(i, weights[i].elements<float>(), gradient);
    }
  }
  return weights;
}

}  // namespace

TEST_CASE("trainer: after skipped steps the optimizer is where it was, and the batches have moved on") {
  const std::unique_ptr<sim::Model> model = sim::find_model("mlp").make(digits());
  sim::Trainer trainer(*model, digits(), sim::find_precision_policy("amp"), std::make_unique<SkipFirst>(3),
                       sim::make_optimizer("adam"), {.batch = 16, .seed = 3});
  for (int step = 0; step < 7; ++step) CHECK(trainer.step().skipped == (step < 3));
  const std::vector<sim::Tensor> expected = train_by_hand(*model, 3, 7);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(trainer.weights()[i].to_floats() == expected[i].to_floats());
  }
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

TEST_CASE("trainer: evaluation covers the whole test set in FP32") {
  const Run r = run({.policy = "fp32", .scaler = "none", .batch = 64}, 60);
  const sim::Evaluation evaluation = sim::evaluate(*r.model, digits(), r.trainer.weights());
  CHECK(evaluation.accuracy > 0.5);
  // Image by image, from the logits.
  std::size_t correct = 0;
  double loss = 0;
  for (std::size_t i = 0; i < digits().test_size(); ++i) {
    const sim::Batch batch = digits().test_batch(i, 1);
    const auto [tape, forward] = sim::record_step(*r.model, r.trainer.parameters(), r.trainer.weights(),
                                                  batch, sim::find_precision_policy("fp32"));
    const std::vector<float> logits = tape.value(forward.outputs).to_floats();
    double sum = 0;
    for (const float z : logits) sum += std::exp(static_cast<double>(z));
    loss += std::log(sum) - logits[static_cast<std::size_t>(batch.labels[0])];
    correct += std::ranges::max_element(logits) - logits.begin() == batch.labels[0];
  }
  const auto size = static_cast<double>(digits().test_size());
  CHECK(evaluation.accuracy == static_cast<double>(correct) / size);
  CHECK(evaluation.loss == doctest::Approx(loss / size).epsilon(1e-5));
}

TEST_CASE("trainer: what the cast itself zeroed is part of what is flushed, for weights as for activations") {
  const Run r = run({.model = "autoencoder", .scaler = "none", .batch = 64, .twin_every = 1}, 3);
  const std::vector<sim::TwinComparison>& twin = r.steps.back().twin;
  for (const sim::GradientSite::Kind kind :
       {sim::GradientSite::Kind::weight, sim::GradientSite::Kind::activation}) {
    sim::TwinComparison total;
    for (std::size_t i = 0; i < twin.size(); ++i) {
      if (r.trainer.sites()[i].kind == kind) total += twin[i];
    }
    INFO(sim::name_of(kind));
    CHECK(total.flushed_at_cast > 0);
    CHECK(total.flushed_at_cast < total.flushed);
  }
}

TEST_CASE("trainer: a two-layer step under amp, with every count worked out by independent code") {
  // y = w2 (w1 x), loss = mean (y - 0)^2 over one value: dy = 2 S y, dh = fl16(dy w2), dw1 = fl16(dh x).
  using fp16::half;
  const float x = 0x1p-9f, w1 = 0.75f, w2 = 0x1.8p-6f, scale = 8;
  const sim::Tensor w1_tensor = sim::Tensor::from({1, 1}, std::vector<float>{w1}),
                    w2_tensor = sim::Tensor::from({1, 1}, std::vector<float>{w2});
  sim::Tape tape(sim::find_precision_policy("amp"));
  const sim::Variable p1 = tape.parameter("w1", w1_tensor), p2 = tape.parameter("w2", w2_tensor);
  const sim::Variable input = tape.constant(sim::Tensor::from({1, 1}, std::vector<float>{x}));
  const sim::Variable h = tape.apply(sim::matmul, {input, p1}, "h"),
                      y = tape.apply(sim::matmul, {h, p2}, "y");
  const sim::Variable loss =
      tape.apply(sim::mean_squared_error, {y, tape.constant(sim::Tensor::zeros({1, 1}, fp16::binary32))});
  const std::vector<sim::TwinComparison> sites =
      sim::compare_sites(tape.backward(loss, {.seed = scale, .count_rounding = true}), scale,
                         tape.backward(loss, {.twin = &sim::find_precision_policy("fp32")}));

  const float h_value = half(x * w1), y_value = half(h_value * w2);
  const float dy = half(2 * scale * y_value), dh = half(dy * w2), dw1 = half(dh * x),
              dw2 = half(dy * h_value);
  const float run[] = {dw1, dw2, dh, dy};
  const float twin_dy = 2 * y_value, twin[] = {twin_dy * w2 * x, twin_dy * h_value, twin_dy * w2, twin_dy};
  REQUIRE(tape.sites().size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    INFO(tape.sites()[i].name);
    CHECK(sites[i].nonzero == 1);
    CHECK(sites[i].flushed == (run[i] == 0));
    CHECK(sites[i].subnormal == (run[i] != 0 && std::abs(run[i]) < 0x1p-14f));
    CHECK(sites[i].twin_max_abs == std::abs(twin[i]));
    CHECK(sites[i].error_square ==
          doctest::Approx(std::pow(double{run[i]} / scale - twin[i], 2)).epsilon(1e-12));
  }
  CHECK(sites[0].flushed_at_cast == 1);  // dh is not zero, so it was dw1's own rounding
}
