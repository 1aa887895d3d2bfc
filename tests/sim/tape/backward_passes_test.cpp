/// Steps of several backward passes: of micro-batches, and of losses with a scaler each.

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/ops/scale.h"
#include "sim/trainer/trainer.h"
#include "tests/sim/training_runs.h"

namespace {

using sim::Tensor;
using training_runs::run;
using training_runs::Run;
using training_runs::Setup;

bool same_weights(const Run& a, const Run& b) {
  return training_runs::same_state(a.trainer.state(), b.trainer.state());
}

/// Adds element by element in binary32.
void add(Tensor& sum, const Tensor& term) {
  const std::span<float> sums = sum.elements<float>();
  std::ranges::transform(sums, term.elements<float>(), sums.begin(), std::plus<>());
}

/// The two losses of ssd under Apex's scalers, written out: S moves for each loss by itself, and the step
/// counts when both were finite.
class TwoLosses {
 public:
  explicit TwoLosses(const Setup& setup)
      : policy_(sim::make_precision_policy(setup.policy)),
        model_(training_runs::make_model(setup.model)),
        state_(sim::ModelState::initial(*model_, setup.options.seed)),
        batches_(training_runs::data_of(sim::DataKind::scenes), setup.options.seed, setup.options.batch),
        optimizer_(sim::make_optimizer("sgd", {{"learning_rate", 0.0625}})) {}

  std::vector<float> scales{0x1p24f, 0x1p24f};
  int skipped = 0, apart = 0;

  void step(std::uint64_t number) {
    const sim::RecordedStep recorded = sim::record_step(*model_, state_, batches_.batch(number), policy_);
    std::vector<Tensor> sums;
    bool finite = true;
    for (std::size_t loss = 0; loss < 2; ++loss) {
      const sim::SiteGradients scaled =
          recorded.tape.backward(recorded.forward.losses[loss], {.loss_scale = scales[loss]});
      bool this_finite = true;
      for (std::size_t i = 0; i < state_.weights.size(); ++i) {  // the parameters are the first sites
        this_finite &= !sim::has_nonfinite(scaled.gradients[i]);
        Tensor unscaled(scaled.gradients[i].shape(), fp16::binary32);
        std::ranges::transform(scaled.gradients[i].to_floats(), unscaled.elements<float>().begin(),
                               [&](float g) { return g * (1 / scales[loss]); });
        if (loss == 0)
          sums.push_back(std::move(unscaled));
        else
          add(sums[i], unscaled);
      }
      if (!this_finite) scales[loss] /= 2;
      finite &= this_finite;
    }
    apart += scales[0] != scales[1];
    if (!finite) {
      ++skipped;
      return;
    }
    optimizer_->begin_step();
    for (std::size_t i = 0; i < sums.size(); ++i) optimizer_->update(i, state_.weights[i], sums[i]);
  }

  const sim::ModelState& state() const { return state_; }

 private:
  sim::PrecisionPolicy policy_;
  std::unique_ptr<sim::Model> model_;
  sim::ModelState state_;
  sim::BatchSampler batches_;
  std::unique_ptr<sim::Optimizer> optimizer_;
};

Setup two_losses() {
  return {.model = training_runs::small_spec("ssd") +
                   ":normaliser=" + std::to_string(int{sim::SsdOptions::by_positives}),
          .scaler = "apex_amp:num_losses=2:init_scale=16777216",
          .optimizer = "sgd:learning_rate=0.0625",
          .schedule = "constant",
          .options = {.batch = 4, .seed = 3}};
}

/// Its gradients are infinite in every second pass, whatever the format.
class InfiniteEverySecondTime final : public sim::Model {
 public:
  explicit InfiniteEverySecondTime(const sim::Model& model) : model_(model) {}
  std::vector<sim::ParameterSpec> parameters() const override { return model_.parameters(); }
  bool is_classifier() const override { return true; }
  sim::ForwardPass forward(sim::ForwardContext& context) const override {
    sim::ForwardPass pass = model_.forward(context);
    const double factor = passes_++ % 2 == 0 ? std::numeric_limits<double>::infinity() : 1;
    pass.loss = context.apply(sim::scale, {pass.loss}, sim::ScaleOptions{.backward_factor = factor});
    return pass;
  }

 private:
  const sim::Model& model_;
  mutable int passes_ = 0;
};

/// Skips steps that are not finite, and keeps what the twin said of them.
class TwinWitness final : public sim::LossScaler {
 public:
  explicit TwinWitness(std::vector<bool>& twin_finite) : twin_finite_(twin_finite) {}
  std::string_view name() const override { return "witness"; }
  float scale() const override { return 1; }
  bool may_want_twin() const override { return true; }
  bool wants_twin(const sim::GradientSummary& summary) const override { return summary.found_nonfinite; }
  names::NamedValues options() const override { return {}; }

 private:
  sim::Decision decide(const sim::GradientSummary& summary) override {
    if (summary.twin) twin_finite_.push_back(summary.twin->finite);
    return summary.found_nonfinite ? sim::Decision::skip : sim::Decision::apply;
  }

  std::vector<bool>& twin_finite_;
};

}  // namespace

TEST_CASE("backward passes: with a scaler for each loss, each is divided by its own S and backs off alone") {
  const Setup setup = two_losses();
  Run r = training_runs::start(setup);
  TwoLosses by_hand(setup);
  for (std::uint64_t step = 0; step < 24; ++step) {
    const std::vector<float> scales = by_hand.scales;
    r.train(1);
    CHECK(r.steps.back().scale == scales[0]);
    CHECK(r.steps.back().further_scales == std::vector{scales[1]});
    by_hand.step(step);
  }
  CHECK(by_hand.skipped > 2);
  CHECK(by_hand.skipped < 20);
  CHECK(by_hand.apart > 0);
  CHECK(training_runs::same_state(r.trainer.state(), by_hand.state()));
}

TEST_CASE("backward passes: a skipped step tells the S of the loss that overflowed") {
  Setup setup = two_losses();
  setup.scaler += ":growth_interval=3";
  setup.options.record_skips = true;
  const Run r = run(setup, 40);
  int of_second_loss = 0;
  for (std::size_t i = 0; i + 1 < r.steps.size(); ++i) {
    const sim::StepRecord &step = r.steps[i], &after = r.steps[i + 1];
    if (!step.skipped()) continue;
    REQUIRE(step.skip);
    CHECK(step.skip->step == step.step);
    const bool first_overflowed = after.scale < step.scale;
    CHECK(step.skip->loss_scale == (first_overflowed ? step.scale : step.further_scales[0]));
    of_second_loss += !first_overflowed && step.scale != step.further_scales[0];
  }
  CHECK(of_second_loss > 0);
}

TEST_CASE("backward passes: in FP64 two losses apart are their sum but for the order of additions") {
  Setup apart = two_losses();
  apart.policy = "fp64";
  Setup together = apart;
  together.scaler = "none";
  const Run a = run(apart, 1), b = run(together, 1);
  double largest = 0, distance = 0;
  for (std::size_t i = 0; i < a.trainer.state().weights.size(); ++i) {
    const Tensor &x = a.trainer.state().weights[i], &y = b.trainer.state().weights[i];
    for (std::size_t j = 0; j < x.size(); ++j) {
      largest = std::max(largest, std::abs(x.element(j)));
      distance = std::max(distance, std::abs(x.element(j) - y.element(j)));
    }
  }
  // Each gradient is a few hundred binary64 terms in another order, of the size of the weights or below.
  CHECK(distance <= 1e3 * 0x1p-53 * largest);
  CHECK(a.steps[0].loss == b.steps[0].loss);
}

TEST_CASE("backward passes: as many scalers as losses or one, and none is delayed beside another") {
  Setup setup = two_losses();
  setup.scaler = "apex_amp:num_losses=3";
  CHECK_THROWS_WITH_AS(run(setup, 0),
                       "scaler 'apex_amp': num_losses = 3 does not suit this model; "
                       "allowed: 1 for the sum of its losses, 2 for one each",
                       std::invalid_argument);
  setup.model = training_runs::small_spec("mlp");
  setup.scaler = "apex_amp:num_losses=2";
  CHECK_THROWS_WITH_AS(run(setup, 0), doctest::Contains("allowed: 1, its only loss"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::make_scaler("apex_amp", {{"num_losses", 2}, {"delay_unscale", 1}}),
                       doctest::Contains("num_losses must be 1"), std::invalid_argument);
}

TEST_CASE("backward passes: several loss scalers go on where they were") {
  const Setup setup = two_losses();
  Run whole = run(setup, 16), first = run(setup, 12);
  Run second = training_runs::start(setup);
  const sim::TrainerState saved = first.trainer.save();
  REQUIRE(saved.loss_scalers.size() == 2);
  CHECK(saved.loss_scalers[0] != saved.loss_scalers[1]);
  second.trainer.restore(saved);
  second.train(4);
  CHECK(same_weights(whole, second));
  CHECK(whole.trainer.save().loss_scalers == second.trainer.save().loss_scalers);

  Setup one = setup;
  one.scaler = "apex_amp";
  CHECK_THROWS_WITH_AS(training_runs::start(one).trainer.restore(saved),
                       doctest::Contains("2 loss scalers in place of 1"), std::invalid_argument);
}

TEST_CASE("backward passes: the twin of summed micro-batches is the sum of their twins") {
  for (const char* scaler : {"static:scale=1024", "apex_amp:init_scale=1024"}) {
    INFO(scaler);
    const Setup fp32{.policy = "fp32",
                     .scaler = scaler,
                     .options = {.batch = 8, .accumulation_steps = 2, .seed = 3, .twin_every = 2}};
    const Run exact = run(fp32, 3);
    CHECK(exact.steps[1].twin.empty());
    for (const std::size_t step : {0, 2}) {
      const sim::TwinComparison total = sim::total_of(exact.steps[step].twin);
      CHECK(total.nonzero > 1000);
      CHECK(total.error_square == 0);
      CHECK(total.flushed == 0);
    }
    Setup amp = fp32;
    amp.policy = "amp";
    const Run rounded = run(amp, 1);
    const sim::TwinComparison total = sim::total_of(rounded.steps[0].twin);
    CHECK(total.relative_error() > 0x1p-14);  // each FP16 rounding is off by up to 2^-11
    CHECK(total.relative_error() < 0x1p-7);
    Setup unmeasured = amp;
    unmeasured.options.twin_every = 0;
    CHECK(same_weights(rounded, run(unmeasured, 1)));
  }
}

TEST_CASE("backward passes: a twin that is not finite is found in whichever micro-batch it is") {
  const std::unique_ptr<sim::Model> inner = training_runs::make_model(training_runs::small_spec("mlp"));
  const InfiniteEverySecondTime model(*inner);
  std::vector<bool> twin_finite;
  const sim::PrecisionPolicy& policy = sim::find_precision_policy("fp32");
  sim::Trainer trainer(model, training_runs::data_of(sim::DataKind::images), policy,
                       std::make_unique<TwinWitness>(twin_finite), sim::make_optimizer("sgd"),
                       sim::make_schedule("constant"), {.batch = 4, .accumulation_steps = 2, .seed = 3});
  for (int i = 0; i < 3; ++i) CHECK(trainer.step().decision == sim::Decision::skip);
  CHECK(twin_finite == std::vector{false, false, false});
}
