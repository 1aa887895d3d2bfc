#include "sim/statistics/flight_recorder.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "sim/ops/linear.h"
#include "sim/ops/mul.h"
#include "sim/ops/relu.h"
#include "sim/ops/sum.h"
#include "tests/sim/ops/evaluation.h"
#include "tests/sim/training_runs.h"

using sim::SkipRecord;
using sim::Tensor;
using Place = sim::SkipRecord::Place;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// sum(relu(x w^T)) with x = (1/2, 1; 1/4, 1), in FP16: the gradient of w is S (3/4, 2).
struct SmallNet {
  const sim::PrecisionPolicy& policy;
  Tensor weights;
  sim::Tape tape{policy};
  sim::Variable loss;

  explicit SmallNet(std::string_view policy_name, std::initializer_list<float> values = {1, 1})
      : policy(sim::find_precision_policy(policy_name)),
        weights(tensor_of({1, 2}, values, policy.model)),
        loss(record()) {}

  SkipRecord cause(float scale) const {
    return find_cause(tape, loss, tape.backward(loss, {.loss_scale = scale, .find_nonfinite = true}),
                      fp16::binary32);
  }

 private:
  sim::Variable record() {
    const sim::Variable x = tape.constant(tensor_of({2, 2}, {0.5f, 1, 0.25f, 1}, policy.model));
    const sim::Variable w = tape.parameter("layer.weight", weights);
    const sim::Variable y = tape.apply(sim::linear, {x, w}, "layer");
    return tape.apply(sim::sum, {tape.apply(sim::relu, {y})});
  }
};

}  // namespace

TEST_CASE("flight recorder: a weight gradient that overflows, to the element") {
  const SkipRecord r = SmallNet("O3").cause(0x1p15f);  // 2 * 2^15 = 65536; 3/4 * 2^15 fits
  CHECK(r.place == Place::gradient);
  CHECK(r.operation == "parameter");
  CHECK(r.layer == "layer.weight");
  CHECK(r.consumer == "linear");
  CHECK(r.element == 1);
  CHECK(r.index == sim::Shape{0, 1});
  CHECK(r.value == infinity);
  CHECK(r.tensor_scale == 0x1p15);
  CHECK(r.twin_value == 2);
  CHECK(r.twin_exponent() == 1);
  CHECK(r.log2_scaled() == 16);
  CHECK(r.twin_finite);
  CHECK(r.is_scale_dependent());
  CHECK(SmallNet("O3").cause(0x1p14f).place == Place::nowhere);
}

TEST_CASE("flight recorder: under autocast it is the gradient of the weight's FP16 copy") {
  const SkipRecord r = SmallNet("amp").cause(0x1p15f);
  CHECK(r.operation == "cast");
  CHECK(r.layer == "layer.weight");
  CHECK(r.index == sim::Shape{0, 1});
  CHECK(r.twin_value == 2);
  CHECK(r.log2_scaled() == 16);
  CHECK(r.is_scale_dependent());
}

TEST_CASE("flight recorder: gradients that are no site are looked at too, the seed first of all") {
  const SkipRecord of_seed = SmallNet("O3").cause(0x1p16f);
  CHECK(of_seed.operation == "sum");
  CHECK(of_seed.consumer == "sum");
  CHECK(of_seed.layer == "layer");
  CHECK(of_seed.twin_value == 1);
  CHECK(of_seed.log2_scaled() == 16);
  CHECK(of_seed.is_scale_dependent());

  // Under autocast the seed is FP32, and the first FP16 tensor is the output of the ReLU.
  const SkipRecord of_relu = SmallNet("amp").cause(0x1p16f);
  CHECK(of_relu.operation == "relu");
  CHECK(of_relu.consumer == "sum");
  CHECK(of_relu.layer == "layer");
  CHECK(of_relu.index == sim::Shape{0, 0});
  CHECK(of_relu.is_scale_dependent());
}

TEST_CASE("flight recorder: a forward pass that was not finite comes first, and no scale cures it") {
  const SkipRecord overflow = SmallNet("O3", {60000, 60000}).cause(1);
  CHECK(overflow.place == Place::forward);
  CHECK(overflow.operation == "linear");
  CHECK(overflow.layer == "layer");
  CHECK(overflow.index == sim::Shape{0, 0});
  CHECK(overflow.value == infinity);
  CHECK(!overflow.is_scale_dependent());

  const SkipRecord planted = SmallNet("fp32", {1, std::nanf("")}).cause(1);
  CHECK(planted.place == Place::forward);
  CHECK(planted.operation == "parameter");
  CHECK(planted.layer == "layer.weight");
  CHECK(planted.element == 1);
  CHECK(std::isnan(planted.value));
}

TEST_CASE("flight recorder: a twin that overflows is cured by no scale") {
  // sum(relu(x w^T)) * 1e30 * 1e30 in FP32: finite values for tiny weights, gradients beyond FP32.
  const sim::PrecisionPolicy& policy = sim::find_precision_policy("fp32");
  const Tensor weights = tensor_of({1, 2}, {1e-25f, 1e-25f});
  sim::Tape tape(policy);
  const sim::Variable x = tape.constant(tensor_of({1, 2}, {1, 1}));
  sim::Variable y = tape.apply(sim::linear, {x, tape.parameter("layer.weight", weights)}, "layer");
  for (int i = 0; i < 2; ++i) {
    y = tape.apply(sim::mul, {y, tape.constant(tensor_of({1, 1}, {1e30f}))});
  }
  const sim::Variable loss = tape.apply(sim::sum, {y});
  const SkipRecord r =
      find_cause(tape, loss, tape.backward(loss, {.loss_scale = 1, .find_nonfinite = true}), fp16::binary32);
  CHECK(r.place == Place::gradient);
  CHECK(r.layer == "layer");
  CHECK(!r.twin_finite);
  CHECK(!r.is_scale_dependent());
  const SkipRecord wide =
      find_cause(tape, loss, tape.backward(loss, {.loss_scale = 1, .find_nonfinite = true}), fp16::binary64);
  CHECK(wide.twin_finite);
}

namespace {

using training_runs::Run;
using training_runs::start;

/// A run whose every step is skipped for its scale.
Run overflowing(std::string_view model, const std::string& policy, std::size_t micro_batches = 1) {
  return training_runs::run(
      {.model = training_runs::small_spec(model),
       .policy = policy,
       .scaler = "static:scale=1e30",
       .options = {.batch = 4, .accumulation_steps = micro_batches, .seed = 3, .record_skips = true}},
      2);
}

}  // namespace

TEST_CASE("flight recorder: every skipped step of every model names a tensor, its twin and the cure") {
  for (const sim::ModelRow& model : sim::models()) {
    for (const std::string policy : {"amp", "fp16", "O2"}) {
      const Run run = overflowing(model.name, policy);
      for (const sim::StepRecord& step : run.steps) {
        INFO(model.name, " ", policy);
        REQUIRE(step.skipped());
        REQUIRE(step.skip.has_value());
        INFO(describe(*step.skip));
        CHECK(step.skip->place == Place::gradient);
        CHECK(step.skip->step == step.step);
        CHECK(step.skip->loss_scale == step.scale);
        CHECK(!std::isfinite(step.skip->value));
        CHECK(!step.skip->layer.empty());
        CHECK(step.skip->is_scale_dependent());
        CHECK(std::isfinite(step.skip->twin_value));
        if (step.skip->twin_value != 0) CHECK(step.skip->log2_scaled() > 15.999);
      }
    }
  }
}

TEST_CASE(
    "flight recorder: under accumulation the first micro-batch is looked into, at its share of the mean") {
  const SkipRecord one = *overflowing("mlp", "amp").steps.front().skip;
  const SkipRecord half = *overflowing("mlp", "amp", 2).steps.front().skip;
  CHECK(half.place == Place::gradient);
  CHECK(half.loss_scale == one.loss_scale);
  CHECK(half.tensor_scale == one.tensor_scale);
  CHECK(half.log2_scaled() > 15.999);
}

TEST_CASE("flight recorder: recording changes nothing, and applied steps have no record") {
  const auto train = [](bool record_skips) {
    return training_runs::run({.scaler = "dynamic:init_scale=1e9:growth_interval=3",
                               .options = {.batch = 16, .seed = 3, .record_skips = record_skips}},
                              30);
  };
  const Run with = train(true), without = train(false);
  CHECK(training_runs::same_state(with.trainer.state(), without.trainer.state()));
  int skips = 0;
  for (const sim::StepRecord& step : with.steps) {
    CHECK(step.skip.has_value() == step.skipped());
    skips += step.skipped();
  }
  CHECK(skips > 1);
  CHECK(skips < 30);
  for (const sim::StepRecord& step : without.steps) CHECK(!step.skip);
}

TEST_CASE("flight recorder: an infinity has the sign of the twin's value") {
  const Run run = training_runs::run({.policy = "O2",
                                      .scaler = "dynamic:init_scale=1e9",
                                      .options = {.batch = 16, .seed = 3, .record_skips = true}},
                                     40);
  int infinities = 0;
  for (const sim::StepRecord& step : run.steps) {
    if (!step.skip || !std::isinf(step.skip->value)) continue;
    ++infinities;
    INFO(describe(*step.skip));
    CHECK(std::signbit(step.skip->value) == std::signbit(step.skip->twin_value));
  }
  CHECK(infinities > 3);
}

namespace {

/// Skips for reasons of its own.
class Moody final : public sim::LossScaler {
 public:
  std::string_view name() const override { return "moody"; }
  float scale() const override { return 1; }
  names::NamedValues options() const override { return {}; }

 private:
  sim::Decision decide(const sim::GradientSummary&) override { return sim::Decision::skip; }
};

}  // namespace

TEST_CASE("flight recorder: a step that was finite everywhere was skipped by its scaler's own rule") {
  Run run = start({.options = {.batch = 16, .seed = 3, .record_skips = true}}, std::make_unique<Moody>());
  run.train(1);
  REQUIRE(run.steps.front().skip.has_value());
  CHECK(run.steps.front().skip->place == Place::nowhere);
  CHECK(!run.steps.front().skip->is_scale_dependent());
}

TEST_CASE("flight recorder: micro-batches that are finite alone may overflow together") {
  const Tensor sum = tensor_of({2, 3}, {1, 2, 3, 4, -infinity, 6}, fp16::binary16);
  const SkipRecord r = sim::record_of_sum("hidden1.weight", sum);
  CHECK(r.place == Place::sum);
  CHECK(r.layer == "hidden1.weight");
  CHECK(r.index == sim::Shape{1, 1});
  CHECK(r.value == -infinity);
  CHECK(r.is_scale_dependent());
}

TEST_CASE("flight recorder: a trainer tells a sum of micro-batches from their own gradients") {
  // Between the scale at which the sum of two gradients overflows and that at which one of them does lies
  // about an octave.
  int sums = 0, gradients = 0;
  for (double scale = 1; scale < 1e9; scale *= 1.19) {
    const Run run = training_runs::run(
        {.policy = "O3",
         .scaler = "static:scale=" + std::to_string(scale),
         .options = {.batch = 16, .accumulation_steps = 2, .seed = 3, .record_skips = true}},
        1);
    const std::optional<SkipRecord>& skip = run.steps.front().skip;
    if (!skip) continue;
    CHECK((gradients == 0 || skip->place == Place::gradient));  // from some scale on
    (skip->place == Place::sum ? sums : gradients) += 1;
  }
  CHECK(sums > 0);
  CHECK(gradients > 0);
}

TEST_CASE("flight recorder: of micro-batches on several ranks it is told which of the two sums overflowed") {
  // A rank's sum is about twice one of its two gradients, and that of two ranks twice as much again.
  int over_ranks = 0, over_micro_batches = 0;
  for (double scale = 1; scale < 1e9; scale *= 1.19) {
    const Run run = training_runs::run(
        {.policy = "O3",
         .scaler = "static:scale=" + std::to_string(scale),
         .options = {.batch = 16,
                     .accumulation_steps = 2,
                     .seed = 3,
                     .record_skips = true,
                     .parallel = {.ranks = 2, .all_reduce = {.division = sim::AllReduceDivision::after}}}},
        1);
    const std::optional<SkipRecord>& skip = run.steps.front().skip;
    if (!skip || skip->place != Place::sum) continue;
    CHECK((over_micro_batches == 0 || !skip->is_sum_over_ranks));  // from some scale on
    (skip->is_sum_over_ranks ? over_ranks : over_micro_batches) += 1;
    const char* const addends = skip->is_sum_over_ranks ? "over 2 ranks whose" : "over micro-batches whose";
    CHECK(sim::describe(*skip).find(addends) != std::string::npos);
  }
  CHECK(over_ranks > 0);
  CHECK(over_micro_batches > 0);
}

TEST_CASE("flight recorder: values have names that say where they are") {
  for (const sim::ModelRow& row : sim::models()) {
    const std::unique_ptr<sim::Model> model = training_runs::make_model(training_runs::small_spec(row.name));
    const sim::ModelState state = sim::ModelState::initial(*model, 3);
    sim::BatchSampler batches(training_runs::data_of(row.data), 3, 4);
    const sim::RecordedStep step =
        sim::record_step(*model, state, batches.batch(0), sim::find_precision_policy("amp"));
    CHECK(!step.tape.first_nonfinite_value());
    for (const sim::GradientSite& site : step.tape.sites()) {
      const sim::ValueName name = step.tape.name_of(site.variable);
      CHECK(name.layer == site.name);
      CHECK((name.operation == "parameter") == (site.kind == sim::GradientSite::Kind::weight));
    }
    CHECK(!step.tape.name_of(step.forward.loss).layer.empty());
  }
}
