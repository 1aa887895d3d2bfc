#include "experiments/training/gradient_record.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "experiments/training/training_setup.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace {

using experiments::GradientRecord;
using experiments::RunChoice;
using experiments::StepGradients;
using test::TemporaryDirectory;

/// A recorded run of a small network.
class RecordedRun {
 public:
  RecordedRun(const std::string& model, RunChoice choice) : choice_(std::move(choice)) {
    options_ = {.model = model,
                .batch = 8,
                .steps = 6,
                .record = true,
                .record_every = 2,
                .directory = directory_ / "."};
    choice_.keep_in = "";
  }

  sim::Trainer trainer() { return setup().trainer(choice_); }
  GradientRecord record() const { return experiments::read_gradient_record(folder()); }
  std::filesystem::path folder() const { return directory_ / "record"; }

 private:
  const experiments::TrainingSetup& setup() {
    if (!setup_) setup_.emplace(options_);
    return *setup_;
  }

  TemporaryDirectory directory_;
  experiments::TrainingOptions options_;
  RunChoice choice_;
  std::optional<experiments::TrainingSetup> setup_;
};

void train(sim::Trainer& trainer, int steps) {
  for (int step = 0; step < steps; ++step) trainer.step();
}

const std::string mlp = "mlp:hidden1=16:hidden2=8";

}  // namespace

TEST_CASE("gradient record: in FP32 a run is its own twin, over micro-batches, ranks and losses, too") {
  RunChoice accumulated{.accumulation_steps = 4}, ranks{}, both{.accumulation_steps = 2};
  ranks.parallel.ranks = 4;
  both.parallel.ranks = 2;
  for (const std::string& model : {mlp, std::string("ssd:channels=2:normaliser=0")}) {
    for (const RunChoice& choice : {RunChoice{}, accumulated, ranks, both}) {
      CAPTURE(model);
      CAPTURE(choice.accumulation_steps);
      CAPTURE(choice.parallel.ranks);
      RecordedRun run(model, choice);
      sim::Trainer trainer = run.trainer();
      train(trainer, 3);
      const GradientRecord record = run.record();
      REQUIRE(record.steps.size() == 3);
      CHECK(std::isnan(record.steps[1].twin_max_abs));
      const double epsilon = choice.parallel.ranks > 1 ? 0x1p-9 : 1e-6;  // ranks exchange halves
      for (const StepGradients& step : {record.steps[0], record.steps[2]}) {
        CHECK(step.twin_max_abs == doctest::Approx(step.max_abs).epsilon(epsilon));
        CHECK(step.twin_max_abs_all == doctest::Approx(step.max_abs_all).epsilon(epsilon));
        REQUIRE(step.twin_exponents);
        REQUIRE(step.exponents);
        CHECK(step.twin_exponents->total() == step.exponents->total());
      }
    }
  }
}

TEST_CASE(
    "gradient record: the twin of a skipped step is that of all its passes, whether it is sampled or not") {
  RunChoice choice{.policy = "amp", .scaler = "dynamic:init_scale=1e30", .accumulation_steps = 4};
  RecordedRun skipped(mlp, choice);
  sim::Trainer trainer = skipped.trainer();
  train(trainer, 2);
  RecordedRun fp32(mlp, {.accumulation_steps = 4});
  sim::Trainer wide = fp32.trainer();
  train(wide, 1);
  const GradientRecord record = skipped.record();
  for (const StepGradients& step : record.steps) {
    CHECK(step.found_nonfinite);
    CHECK(step.twin_max_abs > 0);
  }
  CHECK(record.steps[0].twin_max_abs == doctest::Approx(fp32.record().steps[0].max_abs).epsilon(0.01));
  CHECK(!record.steps[1].exponents);
  CHECK(record.steps[1].twin_exponents);
}

TEST_CASE("gradient record: a run goes on in what a kill left of it, half a row included") {
  RecordedRun whole(mlp, {.policy = "amp"}), killed(mlp, {.policy = "amp"});
  sim::Trainer trainer = whole.trainer();
  train(trainer, 6);
  sim::TrainerState saved;
  {
    sim::Trainer first = killed.trainer();
    train(first, 3);
    saved = first.save();
    train(first, 2);
  }
  for (const char* const name : {"steps.csv", "exponents.csv"})
    std::ofstream(killed.folder() / name, std::ios::app) << "5,0.1";
  sim::Trainer second = killed.trainer();
  second.restore(saved);
  train(second, 3);
  CHECK(test::contents_of(killed.folder()) == test::contents_of(whole.folder()));
}

TEST_CASE("gradient record: a run goes on in no record that lacks steps before its own") {
  RecordedRun run(mlp, {.policy = "amp"});
  sim::TrainerState saved;
  {
    sim::Trainer first = run.trainer();
    train(first, 3);
    saved = first.save();
  }
  const auto refusal = [&] {
    sim::Trainer second = run.trainer();
    second.restore(saved);
    try {
      train(second, 1);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::filesystem::path steps = run.folder() / "steps.csv";
  const std::string text = test::content_of(steps);
  std::ofstream(steps) << text.substr(0, text.rfind('\n', text.size() - 2) + 1);
  CHECK(refusal().find("steps.csv' lacks steps before 3, from which the run goes on") != std::string::npos);
  std::filesystem::remove_all(run.folder());
  CHECK(refusal().find("lacks steps before 3") != std::string::npos);
}

TEST_CASE("gradient record: every scaler's factors are divided out of what is counted") {
  for (const char* const scaler : {"static:scale=256", "fairscale_layerwise:init_scale=1024"}) {
    CAPTURE(scaler);
    RecordedRun run(mlp, {.policy = "amp", .scaler = scaler});
    sim::Trainer trainer = run.trainer();
    train(trainer, 1);
    const GradientRecord record = run.record();
    const StepGradients& step = record.steps.front();
    REQUIRE(step.exponents);
    // Rounding may carry the largest into the next octave.
    CHECK(std::abs(*step.exponents->highest_exponent() - *step.twin_exponents->highest_exponent()) <= 1);
  }
}

TEST_CASE("gradient record: a new run begins anew in the folder of another") {
  RecordedRun run(mlp, {.policy = "amp"}), fresh(mlp, {.policy = "amp"});
  sim::Trainer trainer = run.trainer();
  train(trainer, 4);
  sim::Trainer again = run.trainer(), alone = fresh.trainer();
  train(again, 2);
  train(alone, 2);
  CHECK(test::contents_of(run.folder()) == test::contents_of(fresh.folder()));
}
