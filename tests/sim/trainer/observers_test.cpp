/// Who looks into a training changes no bit of it.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/trainer/step_observer.h"
#include "tests/sim/training_runs.h"

namespace {

using training_runs::run;
using training_runs::Run;
using training_runs::same_state;
using training_runs::Setup;

/// Counts what it is shown and keeps the scales and the twins' first losses of the way.
class Witness final : public sim::StepObserver {
 public:
  sim::BackwardNeeds needs(std::size_t step) const override {
    return {.rounding_counts = step == 1, .first_nonfinite = true, .twin = step == 1};
  }
  void after_backward(const sim::ObservedBackward& backward, sim::StepRecord& record) override {
    events += 'b';
    CHECK(backward.loss_scale == record.scale);
    CHECK(backward.gradients.rounding.empty() == (record.step != 1));
  }
  void after_decision(const sim::ObservedDecision& decision, sim::StepRecord& record) override {
    events += 'd';
    CHECK(decision.twin.has_value() == (record.step == 1));
    CHECK(decision.gradients.values.gradients.size() == decision.gradients.sites.size());
    last_decision = record.decision;
  }
  void after_last_decision(sim::StepRecord& record) override {
    events += record.skipped() ? 's' : 'a';
    CHECK(record.parameter_updates.empty());
  }

  std::string events;
  sim::Decision last_decision = sim::Decision::apply;
};

}  // namespace

TEST_CASE("trainer: measuring a step against its twin changes nothing in it") {
  for (const fp16::Format twin : {fp16::binary32, fp16::binary64}) {
    const Run measured = run({.options = {.batch = 16, .seed = 3, .twin_every = 3, .twin_format = twin}}, 10);
    CHECK(same_state(measured.trainer.state(), run({}, 10).trainer.state()));
    CHECK(measured.steps[3].twin.size() == measured.trainer.sites().size());
    CHECK(measured.steps[4].twin.empty());
  }
}

TEST_CASE("trainer: measuring changes nothing of what any scaler knows either") {
  for (const sim::ScalerRow& scaler : sim::scalers()) {
    INFO(scaler.name);
    Setup setup{.policy = scaler.kind == sim::ScalerKind::tensor ? "fp8" : "amp",
                .scaler = std::string(scaler.name),
                .options = {.batch = 16, .seed = 3}};
    Run plain = run(setup, 6);
    setup.options.twin_every = 1;
    setup.options.statistics_every = 1;
    Run measured = run(setup, 6);
    const sim::TrainerState a = plain.trainer.save(), b = measured.trainer.save();
    CHECK(same_state(plain.trainer.state(), measured.trainer.state()));
    CHECK(a.loss_scalers == b.loss_scalers);
    CHECK(a.layer_scaler == b.layer_scaler);
    CHECK(a.tensor_scaler == b.tensor_scaler);
  }
}

TEST_CASE("trainer: measuring changes nothing where a scaler asks for the twin of several micro-batches") {
  for (const std::size_t ranks : {1u, 2u}) {
    Setup setup{.scaler = "adaptive:headroom=0:window=1:max_gap=1",
                .options = {.batch = 16, .accumulation_steps = 4, .seed = 3}};
    setup.options.parallel.ranks = ranks;
    Run plain = run(setup, 80);
    setup.options.twin_every = 1;
    Run measured = run(setup, 80);
    CAPTURE(ranks);
    CHECK(std::ranges::count_if(plain.steps, &sim::StepRecord::skipped) > 0);
    CHECK(same_state(plain.trainer.state(), measured.trainer.state()));
    CHECK(plain.trainer.save().loss_scalers == measured.trainer.save().loss_scalers);
    for (std::size_t step = 0; step < plain.steps.size(); ++step) {
      CAPTURE(step);
      CHECK(plain.steps[step].scale == measured.steps[step].scale);
      CHECK(plain.steps[step].scaler_twins == measured.steps[step].scaler_twins);
    }
  }
}

TEST_CASE("trainer: an observer sees each backward pass, each decision and the end, and changes no bit") {
  const auto events_of = [](const std::string& scaler, const std::string& expected) {
    const Setup setup{.scaler = scaler, .options = {.batch = 8, .accumulation_steps = 2, .seed = 3}};
    Run plain = training_runs::start(setup), observed = training_runs::start(setup);
    Witness witness;
    observed.trainer.observe(witness);
    plain.train(3), observed.train(3);
    CHECK(witness.events == expected);
    CHECK(same_state(plain.trainer.state(), observed.trainer.state()));
    CHECK(plain.trainer.scale() == observed.trainer.scale());
    return witness.last_decision;
  };
  CHECK(events_of("dynamic", "bbdabbdabbda") == sim::Decision::apply);
  CHECK(events_of("apex_amp:init_scale=1024", "bdbdabdbdabdbda") == sim::Decision::apply);
  CHECK(events_of("dynamic:init_scale=1e35", "bbdsbbdsbbds") == sim::Decision::skip);
}

TEST_CASE("trainer: the twins that a scaler asks for are counted, those that measure are not") {
  const auto twins = [](const std::string& scaler, std::size_t twin_every) {
    int count = 0;
    for (const sim::StepRecord& step :
         run({.scaler = scaler, .options = {.batch = 16, .seed = 3, .twin_every = twin_every}}, 6).steps)
      count += step.scaler_twins;
    return count;
  };
  CHECK(twins("dynamic", 1) == 0);
  CHECK(twins("adaptive", 0) >= 1);
  CHECK(twins("adaptive", 1) == twins("adaptive", 0));
}
