#include "sim/trainer/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "fp16/half.h"
#include "sim/ops/add.h"
#include "sim/ops/matmul.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/scale.h"
#include "sim/ops/sum.h"
#include "tests/sim/training_runs.h"

namespace {

using sim::Tensor;
using training_runs::data_of;
using training_runs::run;
using training_runs::Run;
using training_runs::same_state;
using training_runs::Setup;

const sim::Dataset& digits() {
  return data_of(sim::DataKind::images);
}

std::vector<float> values(const Tensor& tensor) {
  return tensor.to_floats();
}

/// A scaler with a fixed S that skips the first steps it sees, whatever their gradients, or says abort.
class Scripted final : public sim::LossScaler {
 public:
  explicit Scripted(int bad_steps, sim::Decision decision = sim::Decision::skip)
      : left_(bad_steps), decision_(decision) {}
  std::string_view name() const override { return "scripted"; }
  float scale() const override { return 256; }
  std::string abort_reason() const override { return "the script ends here"; }
  names::NamedValues options() const override { return {}; }

 private:
  sim::Decision decide(const sim::GradientSummary&) override {
    return left_-- > 0 ? decision_ : sim::Decision::apply;
  }

  int left_;
  sim::Decision decision_;
};

Run start_scripted(const Setup& setup, int bad_steps, sim::Decision decision = sim::Decision::skip) {
  return training_runs::start(setup, std::make_unique<Scripted>(bad_steps, decision));
}

/// The loop of mixed precision written out, for batches of 16 digits.
class LoopByHand {
 public:
  LoopByHand(const std::string& policy, std::unique_ptr<sim::Optimizer> optimizer,
             std::string_view model = "mlp")
      : policy_(sim::make_precision_policy(policy)),
        optimizer_(std::move(optimizer)),
        model_(training_runs::make_model(training_runs::small_spec(model))),
        state_(sim::ModelState::initial(*model_, 3)),
        batches_(digits(), 3, 16) {
    for (Tensor& weight : state_.weights) weight = tensor_of(weight.shape(), values(weight), policy_.weights);
  }

  /// What backward leaves in .grad after these batches, each with the seed S / their number; rounded to the
  /// format of the model's parameters at every addition.
  std::vector<Tensor> scaled_gradients(const std::vector<std::uint64_t>& batch_numbers, float scale,
                                       std::size_t micro_batches) {
    std::vector<Tensor> sums;
    for (const std::uint64_t number : batch_numbers) {
      const sim::RecordedStep step = sim::record_step(*model_, state_, batches_.batch(number), policy_);
      sim::SiteGradients next =
          step.tape.backward(step.forward.loss, {.loss_scale = scale / static_cast<float>(micro_batches)});
      for (std::size_t i = 0; i < state_.weights.size(); ++i) {  // the parameters are the first sites
        if (number == batch_numbers.front()) {
          sums.push_back(std::move(next.gradients[i]));
          continue;
        }
        std::vector<float> sum = values(sums[i]), term = values(next.gradients[i]);
        std::ranges::transform(sum, term, sum.begin(), std::plus<>());
        sums[i] = tensor_of(sums[i].shape(), sum, sums[i].format());
      }
    }
    return sums;
  }

  /// Each element times 1/S, rounded once to the policy's format.
  std::vector<Tensor> unscaled(const std::vector<Tensor>& scaled, float scale) const {
    std::vector<Tensor> gradients;
    for (const Tensor& tensor : scaled) {
      std::vector<float> gradient = values(tensor);
      for (float& g : gradient) g *= 1 / scale;
      gradients.push_back(tensor_of(tensor.shape(), gradient, policy_.unscaled_gradients));
    }
    return gradients;
  }

  void update(const std::vector<Tensor>& gradients) {
    optimizer_->begin_step();
    for (std::size_t i = 0; i < state_.weights.size(); ++i)
      optimizer_->update(i, state_.weights[i], gradients[i]);
  }

  const sim::ModelState& state() const { return state_; }

 private:
  sim::PrecisionPolicy policy_;
  std::unique_ptr<sim::Optimizer> optimizer_;
  std::unique_ptr<sim::Model> model_;
  sim::ModelState state_;
  sim::BatchSampler batches_;
};

std::vector<double> weights_of(const Run& r) {
  std::vector<double> all;
  for (const Tensor& weight : r.trainer.state().weights) {
    for (std::size_t i = 0; i < weight.size(); ++i) all.push_back(weight.element(i));
  }
  return all;
}

/// Euclidean norm of b - a.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  return std::sqrt(std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                                      [](double x, double y) { return (y - x) * (y - x); }));
}

}  // namespace

TEST_CASE("trainer: two runs of the same seed are the same, bit for bit") {
  const Run a = run({}, 10), b = run({}, 10);
  CHECK(same_state(a.trainer.state(), b.trainer.state()));
  for (std::size_t i = 0; i < a.steps.size(); ++i) CHECK(a.steps[i].loss == b.steps[i].loss);
  CHECK(!same_state(a.trainer.state(), run({.options = {.batch = 16, .seed = 4}}, 10).trainer.state()));
}

TEST_CASE("trainer: the copies of master weights are rounded in the direction of the policy") {
  const auto trained = [](const char* policy) {
    return run({.policy = policy, .scaler = "none", .options = {.batch = 16, .seed = 3}}, 3);
  };
  const Run nearest = trained("O2"), stochastic = trained("O2:weight_rounding=stochastic");
  CHECK(!same_state(nearest.trainer.state(), stochastic.trainer.state()));
  CHECK(!same_state(nearest.trainer.state(), trained("O2:weight_rounding=toward_zero").trainer.state()));
  CHECK(same_state(stochastic.trainer.state(), trained("O2:weight_rounding=stochastic").trainer.state()));
}

TEST_CASE("trainer: running statistics have the format of the model, unless batch norm is kept in FP32") {
  const auto formats = [](const char* policy) {
    const Run r = run({.model = training_runs::small_spec("cnn"), .policy = policy, .scaler = "none"}, 2);
    std::vector<fp16::Format> formats;
    for (const auto& [name, buffer] : r.trainer.state().buffers) formats.push_back(buffer.format());
    CHECK(!formats.empty());
    CHECK(std::ranges::all_of(formats, [&](const fp16::Format& f) { return f == formats.front(); }));
    return formats.front();
  };
  CHECK(formats("amp") == fp16::binary32);
  CHECK(formats("O2") == fp16::binary32);
  CHECK(formats("O2:keep_batchnorm_fp32=false") == fp16::binary16);
  CHECK(formats("O3") == fp16::binary16);
  CHECK(formats("fp16") == fp16::binary16);
  CHECK(formats("fp64") == fp16::binary64);
}

TEST_CASE("trainer: batches that are recorded as different steps drop different elements") {
  const std::unique_ptr<sim::Model> model =
      training_runs::make_model(training_runs::small_spec("transformer") + ":dropout=0.5");
  const sim::ModelState state = sim::ModelState::initial(*model, 3);
  const sim::Batch batch = data_of(sim::DataKind::text).test_batch(0, 2);
  const auto loss = [&](std::uint64_t seed, std::uint64_t step) {
    const sim::RecordedStep recorded = sim::record_step(
        *model, state, batch, sim::find_precision_policy("fp32"), {.seed = seed, .step = step});
    return recorded.tape.value(recorded.forward.loss).element(0);
  };
  CHECK(loss(1, 1) == loss(1, 1));
  CHECK(loss(1, 1) != loss(1, 2));
  CHECK(loss(1, 1) != loss(2, 1));
}

TEST_CASE("trainer: stochastic roundings of the branches of a fork and of their sum are independent") {
  const sim::PrecisionPolicy policy = sim::make_precision_policy("O3:gradient_rounding=stochastic");
  constexpr std::size_t size = 40'000;
  const Tensor weights = Tensor::zeros({size}, fp16::binary16);
  sim::Tape tape(policy);
  const sim::Variable w = tape.parameter("w", weights);
  const auto branch = [&](double factor) {
    return tape.apply(sim::sum,
                      {tape.apply(sim::scale, {w}, {}, sim::ScaleOptions{.backward_factor = factor})});
  };
  const sim::Variable loss = tape.apply(sim::add, {branch(1.5), branch(1 + 0x1p-11)});
  const Tensor gradient = tape.backward(loss, {}).gradients[0];
  // Half of the second branch's elements round up to 1 + 2^-10, whose sum with 1.5 is a tie of which again
  // half round up, to 2.5 + 2^-9: on average half a unit of 2^-10. One element deviates by 0.87 units.
  double units = 0;
  for (std::size_t i = 0; i < size; ++i) units += (gradient.element(i) - 2.5) * 0x1p10;
  CHECK(std::abs(units / size - 0.5) < 6 * 0.87 / std::sqrt(double{size}));
}

TEST_CASE("trainer: in FP32 a power-of-two scale changes no bit, and run and twin are equal") {
  const Run scaled = run(
      {.policy = "fp32", .scaler = "static:scale=1024", .options = {.batch = 16, .seed = 3, .twin_every = 4}},
      10);
  const Run plain = run({.policy = "fp32", .scaler = "none"}, 10);
  CHECK(same_state(scaled.trainer.state(), plain.trainer.state()));
  const sim::TwinComparison twin = sim::total_of(scaled.steps[4].twin);
  CHECK(twin.nonzero > 0);
  CHECK(twin.error_square == 0);
  CHECK(twin.flushed == 0);
}

TEST_CASE("trainer: in FP64 run and FP64 twin are equal, FP32 is only near its FP64 twin") {
  const auto error = [](const char* policy) {
    const Run r = run({.policy = policy,
                       .scaler = "none",
                       .options = {.batch = 16, .seed = 3, .twin_every = 1, .twin_format = fp16::binary64}},
                      2);
    return sim::total_of(r.steps.back().twin).relative_error();
  };
  CHECK(error("fp64") == 0);
  CHECK(error("fp32") > 0x1p-30);
  CHECK(error("fp32") < 1e-5);
}

TEST_CASE("trainer: an overflowing step is skipped and leaves weights and optimizer untouched") {
  const std::string far_too_large = "1099511627776";  // 2^40
  const std::string model = training_runs::small_spec("autoencoder");
  const Run overflowing = run({.model = model, .scaler = "static:scale=" + far_too_large}, 3);
  CHECK(std::ranges::all_of(overflowing.steps, &sim::StepRecord::skipped));
  CHECK(same_state(overflowing.trainer.state(), run({.model = model}, 0).trainer.state()));
  CHECK(overflowing.trainer.optimizer().steps() == 0);

  const Run dynamic = run(
      {.scaler = "dynamic:init_scale=" + far_too_large, .options = {.batch = 16, .seed = 3, .twin_every = 1}},
      40);
  const auto first_applied = std::ranges::find(dynamic.steps, false, &sim::StepRecord::skipped);
  REQUIRE(first_applied != dynamic.steps.begin());
  REQUIRE(first_applied != dynamic.steps.end());
  CHECK(first_applied->scale ==
        std::ldexp(1.0f, 40 - static_cast<int>(first_applied - dynamic.steps.begin())));
  CHECK(sim::total_of(dynamic.steps.front().twin).overflow > 0);
  CHECK(sim::total_of(first_applied->twin).nonfinite == 0);
}

TEST_CASE("trainer: after skipped steps the optimizer is where it was, and the batches have moved on") {
  Run r = start_scripted({.optimizer = "adam"}, 3);
  for (int step = 0; step < 7; ++step) CHECK(r.trainer.step().skipped() == (step < 3));
  LoopByHand by_hand("amp", sim::make_optimizer("adam"));
  for (std::uint64_t step = 3; step < 7; ++step)
    by_hand.update(by_hand.unscaled(by_hand.scaled_gradients({step}, 256, 1), 256));
  CHECK(same_state(r.trainer.state(), by_hand.state()));
}

TEST_CASE("trainer: an abort applies nothing and says why") {
  Run r = start_scripted({}, 1, sim::Decision::abort);
  const sim::StepRecord step = r.trainer.step();
  CHECK(step.decision == sim::Decision::abort);
  CHECK(step.skipped());
  CHECK(r.trainer.abort_reason() == "the script ends here");
  CHECK(same_state(r.trainer.state(), run({}, 0).trainer.state()));
}

TEST_CASE("trainer: schedules advance with applied steps, with skipped ones only if they ask to") {
  const auto rates = [](const std::string& schedule) {
    Run r = start_scripted({.optimizer = "sgd:learning_rate=0.5", .schedule = schedule}, 2);
    r.train(6);
    std::vector<double> rates;
    for (const sim::StepRecord& step : r.steps) rates.push_back(step.learning_rate);
    return rates;
  };
  CHECK(rates("constant:warmup_steps=4") == std::vector<double>{0, 0, 0.125, 0.25, 0.375, 0.5});
  CHECK(rates("constant:warmup_steps=4:counts_skipped_steps=1") ==
        std::vector<double>{0, 0, 0.375, 0.5, 0.5, 0.5});
}

TEST_CASE("trainer: master weights are rounded to the model's copies after every step") {
  const Setup setup{.policy = "O2", .scaler = "static:scale=1024", .optimizer = "sgd:learning_rate=0.0625"};
  const Run r = run(setup, 6);
  LoopByHand by_hand("O2", sim::make_optimizer("sgd", {{"learning_rate", 0.0625}}));
  for (std::uint64_t step = 0; step < 6; ++step)
    by_hand.update(by_hand.unscaled(by_hand.scaled_gradients({step}, 1024, 1), 1024));
  CHECK(r.trainer.state().weights.front().format() == fp16::binary32);
  CHECK(same_state(r.trainer.state(), by_hand.state()));
}

TEST_CASE("trainer: without master weights unscaling flushes again what the scale had kept") {
  const Setup setup{.model = training_runs::small_spec("autoencoder"),
                    .policy = "O3",
                    .scaler = "static:scale=4096",
                    .optimizer = "sgd:learning_rate=0.0625"};
  const Run r = run(setup, 3);
  LoopByHand by_hand("O3", sim::make_optimizer("sgd", {{"learning_rate", 0.0625}}), "autoencoder");
  std::size_t reflushed = 0;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const std::vector<Tensor> scaled = by_hand.scaled_gradients({step}, 4096, 1);
    const std::vector<Tensor> unscaled = by_hand.unscaled(scaled, 4096);
    for (std::size_t i = 0; i < scaled.size(); ++i) {
      CHECK(scaled[i].format() == fp16::binary16);
      for (std::size_t k = 0; k < scaled[i].size(); ++k)
        reflushed += scaled[i].element(k) != 0 && unscaled[i].element(k) == 0;
    }
    by_hand.update(unscaled);
  }
  CHECK(reflushed > 1000);
  CHECK(r.trainer.state().weights.front().format() == fp16::binary16);
  CHECK(same_state(r.trainer.state(), by_hand.state()));
}

TEST_CASE("trainer: micro-batches add up scaled, each sum rounded to the format of the gradient") {
  for (const char* policy : {"amp", "O2", "O3"}) {
    const Setup setup{.policy = policy,
                      .scaler = "static:scale=512",
                      .optimizer = "sgd:learning_rate=0.0625",
                      .options = {.batch = 16, .accumulation_steps = 3, .seed = 3}};
    const Run r = run(setup, 2);
    LoopByHand by_hand(policy, sim::make_optimizer("sgd", {{"learning_rate", 0.0625}}));
    for (const std::vector<std::uint64_t>& batches :
         {std::vector<std::uint64_t>{0, 1, 2}, std::vector<std::uint64_t>{3, 4, 5}})
      by_hand.update(by_hand.unscaled(by_hand.scaled_gradients(batches, 512, 3), 512));
    INFO(policy);
    CHECK(same_state(r.trainer.state(), by_hand.state()));
  }
}

TEST_CASE("trainer: four micro-batches of 8 are one batch of 32 but for the order of sums, in FP64") {
  const auto weights_after_a_step = [](std::size_t micro_batches) {
    const Setup setup{
        .policy = "fp64",
        .scaler = "none",
        .optimizer = "sgd:learning_rate=1",
        .options = {.batch = 32 / micro_batches, .accumulation_steps = micro_batches, .seed = 3}};
    return run(setup, 1);
  };
  const Run one = weights_after_a_step(1), four = weights_after_a_step(4);
  CHECK(four.steps[0].loss == doctest::Approx(one.steps[0].loss).epsilon(0x1p-20));
  // Rows never meet but in the sums over the batch, and factors of 1/4 are exact: a gradient is the sum of
  // the same 32 terms in another order, its error at most gamma_32 = 32u/(1 - 32u) times the sum of
  // magnitudes; then both are subtracted from the same weight, which rounds once. With probabilities and
  // inputs of at most 1 and weights whose row sums of magnitudes are below 40, hidden values are below
  // 40 * 40 and gradients of layers' outputs below 40 * 40 / 32 a row.
  constexpr double u = 0x1p-53, gamma = 32 * u / (1 - 32 * u), largest_term = 1600.0 * 1600 / 32;
  const std::vector<double> a = weights_of(one), b = weights_of(four);
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  CHECK(largest <= 2 * gamma * 32 * largest_term + 2 * u * 40);
  CHECK(largest < 1e-14);
  CHECK(distance(a, weights_of(run({.policy = "fp64", .optimizer = "sgd"}, 0))) > 1e-3);
}

TEST_CASE("trainer: Apex's scaler moves after every backward, each micro-batch divided by its own S") {
  const std::string scaler = "apex_amp:init_scale=256:growth_interval=3";
  const Setup setup{.scaler = scaler,
                    .optimizer = "sgd:learning_rate=0.0625",
                    .options = {.batch = 16, .accumulation_steps = 2, .seed = 3}};
  const Run r = run(setup, 3);
  const float scales[] = {256, 256, 256, 512, 512, 512};
  LoopByHand by_hand("amp", sim::make_optimizer("sgd", {{"learning_rate", 0.0625}}));
  for (std::uint64_t step = 0; step < 3; ++step) {
    CHECK(r.steps[step].scale == scales[2 * step]);
    std::vector<Tensor> gradients;
    for (const std::uint64_t batch : {2 * step, 2 * step + 1}) {
      std::vector<Tensor> next =
          by_hand.unscaled(by_hand.scaled_gradients({batch}, scales[batch], 2), scales[batch]);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        std::vector<float> sum = values(gradients[i]), term = values(next[i]);
        std::ranges::transform(sum, term, sum.begin(), std::plus<>());
        next[i] = tensor_of(next[i].shape(), sum);
      }
      gradients = std::move(next);
    }
    by_hand.update(gradients);
  }
  CHECK(r.trainer.scale() == 1024);
  CHECK(same_state(r.trainer.state(), by_hand.state()));

  Setup delayed = setup;
  delayed.scaler = scaler + ":delay_unscale=1";
  CHECK(run(delayed, 3).trainer.scale() == 512);  // three steps, three counts
}

TEST_CASE("trainer: one bad micro-batch of Apex's skips the step and lowers S for the next one") {
  const Run r = run({.scaler = "apex_amp:init_scale=16777216",
                     .options = {.batch = 16, .accumulation_steps = 3, .seed = 3}},
                    1);
  CHECK(r.steps[0].decision == sim::Decision::skip);
  CHECK(r.trainer.scale() == 0x1p21);
  CHECK(same_state(r.trainer.state(), run({}, 0).trainer.state()));
}

TEST_CASE("trainer: clipping bounds the step, on scaled gradients it bounds it S times too tightly") {
  constexpr double scale = 256;
  const auto step_with = [&](double max_norm, bool before_unscale) {
    Setup setup{.policy = "fp64", .scaler = "static:scale=256", .optimizer = "sgd:learning_rate=1"};
    setup.options.clipping.max_norm = max_norm;
    setup.options.clip_before_unscale = before_unscale;
    Run r = training_runs::start(setup);
    const std::vector<double> before = weights_of(r);
    r.train(1);
    return std::pair(distance(before, weights_of(r)), r.steps[0].clipping.norm);
  };
  const auto [norm, unclipped] = step_with(1e9, false);
  CHECK(unclipped.norm == doctest::Approx(norm).epsilon(1e-9));
  CHECK(unclipped.coefficient == 1);
  const double max_norm = norm / 4;
  const auto [after, after_clipping] = step_with(max_norm, false);
  CHECK(after == doctest::Approx(max_norm * norm / (norm + 1e-6)).epsilon(1e-9));
  CHECK(after_clipping.norm == doctest::Approx(norm).epsilon(1e-9));
  const auto [before, before_clipping] = step_with(max_norm, true);
  CHECK(before == doctest::Approx(max_norm / scale).epsilon(1e-6));
  CHECK(before_clipping.norm == doctest::Approx(scale * norm).epsilon(1e-9));
}

TEST_CASE("trainer: the norm of gradients that are no numbers is none, where it is clipped by scaled, too") {
  for (const bool before_unscale : {false, true}) {
    Setup setup{.policy = "amp", .scaler = "static:scale=1e38:skip_nonfinite=0"};
    setup.options.clipping.max_norm = 1;
    setup.options.clip_before_unscale = before_unscale;
    Run r = training_runs::start(setup);
    r.train(1);
    CHECK(std::isnan(r.steps[0].clipping.norm.norm));
  }
}

TEST_CASE("trainer: clipping by value is counted, and binary16 gradients are clipped too") {
  Setup setup{.policy = "O3", .scaler = "none", .optimizer = "sgd:learning_rate=1"};
  setup.options.clipping.max_value = 0x1p-10;
  Run r = training_runs::start(setup);
  const std::vector<double> before = weights_of(r);
  r.train(1);
  CHECK(r.steps[0].clipping.clipped_values > 0);
  const std::vector<double> after = weights_of(r);
  double largest = 0;
  for (std::size_t i = 0; i < after.size(); ++i) largest = std::max(largest, std::abs(after[i] - before[i]));
  CHECK(largest <= 0x1p-10 + 0x1p-12);  // the new weight, below 1, is rounded by at most 2^-12
  CHECK(largest >= 0x1p-10 - 0x1p-12);
}

TEST_CASE("trainer: DeepSpeed halves the gradient of a step at which S grows, unless told not to") {
  const auto weights_after = [](int steps, bool quirk) {
    const std::string scaler = "deepspeed:init_scale=1024:growth_interval=2:unscale_by_updated_scale=";
    return weights_of(
        run({.policy = "fp64", .scaler = scaler + (quirk ? "1" : "0"), .optimizer = "sgd:learning_rate=1"},
            steps));
  };
  // Its count starts a step late: S doubles at the third.
  const std::vector<double> before = weights_after(2, true);
  CHECK(before == weights_after(2, false));
  const std::vector<double> halved = weights_after(3, true), whole = weights_after(3, false);
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    largest = std::max(largest, std::abs(whole[i] - before[i]));
    error = std::max(error, std::abs(2 * (halved[i] - before[i]) - (whole[i] - before[i])));
  }
  CHECK(largest > 1e-3);
  CHECK(error <= 3 * 0x1p-53);  // weights below 1 are rounded once in each run
}

TEST_CASE("trainer: a scaler of casts needs a policy that casts with scales") {
  CHECK_THROWS_WITH_AS(training_runs::start({.policy = "amp", .scaler = "delayed"}),
                       doctest::Contains("allowed: policy fp8"), std::invalid_argument);
  CHECK(run({.policy = "fp8", .scaler = "delayed"}, 2).steps[1].loss > 0);
}

TEST_CASE("trainer: unscaled FP16 loses gradients that a scale keeps") {
  const auto first_step = [](const char* scaler) {
    return run(
        {.model = "autoencoder", .scaler = scaler, .options = {.batch = 512, .seed = 3, .twin_every = 1}}, 1);
  };
  const Run plain = first_step("none"), scaled = first_step("static");
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

TEST_CASE("trainer: evaluation covers the whole test set in FP32, whatever the policy") {
  for (const char* policy : {"fp32", "O3"}) {
    const Run r =
        run({.model = "mlp", .policy = policy, .scaler = "none", .options = {.batch = 64, .seed = 3}}, 60);
    const sim::Evaluation evaluation = sim::evaluate(*r.model, digits(), r.trainer.state());
    CHECK(evaluation.accuracy > 0.5);
    // Image by image, from the logits.
    std::size_t correct = 0;
    double loss = 0;
    for (std::size_t i = 0; i < digits().test_size(); ++i) {
      const sim::Batch batch = digits().test_batch(i, 1);
      const sim::RecordedStep step =
          sim::record_step(*r.model, r.trainer.state(), batch, sim::find_precision_policy("fp32"));
      const std::vector<float> logits = values(step.tape.value(step.forward.outputs[0]));
      double sum = 0;
      for (const float z : logits) sum += std::exp(static_cast<double>(z));
      loss += std::log(sum) - logits[static_cast<std::size_t>(batch.labels[0])];
      correct += std::ranges::max_element(logits) - logits.begin() == batch.labels[0];
    }
    const auto size = static_cast<double>(digits().test_size());
    CHECK(evaluation.accuracy == static_cast<double>(correct) / size);
    CHECK(evaluation.loss == doctest::Approx(loss / size).epsilon(1e-5));
    CHECK(sim::evaluate(*r.model, digits(), r.trainer.state(), 2).loss == evaluation.loss);
  }
}

TEST_CASE("trainer: what the cast itself zeroed is part of what is flushed, for weights as for activations") {
  const Run r = run(
      {.model = "autoencoder", .scaler = "none", .options = {.batch = 64, .seed = 3, .twin_every = 1}}, 3);
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
  const Tensor w1_tensor = tensor_of({1, 1}, {w1}), w2_tensor = tensor_of({1, 1}, {w2});
  sim::Tape tape(sim::find_precision_policy("amp"));
  const sim::Variable p1 = tape.parameter("w1", w1_tensor), p2 = tape.parameter("w2", w2_tensor);
  const sim::Variable h = tape.apply(sim::matmul, {tape.constant(tensor_of({1, 1}, {x})), p1}, "h"),
                      y = tape.apply(sim::matmul, {h, p2}, "y");
  const sim::Variable loss = tape.apply(sim::mean_squared_error, {y, tape.constant(tensor_of({1, 1}, {0}))});
  const std::vector<sim::TwinComparison> sites =
      sim::compare_sites(tape.sites(), tape.backward(loss, {.loss_scale = scale, .count_rounding = true}),
                         tape.backward(loss, {.twin = fp16::binary32}));

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
