#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "experiments/common/training_setup.h"

using experiments::TrainingOptions;
using experiments::TrainingSetup;

TEST_CASE("a setup fills in what the model trains well with, and keeps what is given") {
  TrainingOptions options{.model = "mlp:hidden1=8:hidden2=4"};
  const TrainingSetup setup(options);
  CHECK(options.optimizer == "momentum");
  CHECK(options.schedule == "constant");
  CHECK(options.learning_rate == 0.05);
  CHECK(options.batch == 128);
  CHECK(setup.steps() == 500);
  CHECK(setup.model_name() == "mlp");
  CHECK(setup.description() == "mlp on digits, momentum, learning rate 0.05, batch 128");

  TrainingOptions given{.model = "mlp",
                        .optimizer = "adamw:weight_decay=0.5",
                        .schedule = "cosine:warmup_steps=2",
                        .learning_rate = 0.25,
                        .batch = 3,
                        .steps = 7};
  const TrainingSetup as_given(given);
  CHECK(as_given.steps() == 7);
  sim::Trainer trainer =
      as_given.trainer({.policy = "O2:loss_scale=8", .scaler = "static:scale=8", .seed = 1});
  CHECK(trainer.optimizer().name() == "adamw");
  CHECK(trainer.optimizer().learning_rate() == 0.25);
  CHECK(trainer.scale() == 8);
  CHECK(trainer.next_batch().size == 3);
  const sim::StepRecord first = trainer.step();
  CHECK(first.learning_rate == 0.125);
  CHECK(first.scale == 8);
}

TEST_CASE("a model's learning rate is kept for optimizers of its own kind, others bring theirs") {
  const auto learning_rate = [](std::string model, std::string optimizer) {
    TrainingOptions options{.model = std::move(model), .optimizer = std::move(optimizer)};
    const TrainingSetup setup(options);
    return *options.learning_rate;
  };
  CHECK(learning_rate("mlp", "sgd") == 0.05);
  CHECK(learning_rate("mlp", "adamw") == 1e-3);
  CHECK(learning_rate("mlp", "adamw:learning_rate=0.5") == 0.5);
  CHECK(learning_rate("transformer", "adamw8bit") == sim::find_model("transformer").learning_rate);
}

TEST_CASE("a setup refuses in one line what does not fit together") {
  const auto refused = [](TrainingOptions options) {
    try {
      const TrainingSetup setup(options);
      setup.trainer({});
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused({.model = "mlp"}) == "");
  CHECK(refused({.model = "mlq"}).find("did you mean 'mlp'?") != std::string::npos);
  CHECK(refused({.model = "mlp:width=3"}).find("unknown option 'width'") != std::string::npos);
  CHECK(refused({.data = "text", .model = "mlp"}).find("'text' holds text") != std::string::npos);
  CHECK(refused({.data = "scenes", .model = "lstm"}).find("'scenes' holds scenes") != std::string::npos);
  CHECK(refused({.model = "mlp", .optimizer = "sgd:momentum=2"}).find("momentum = 2") != std::string::npos);
  CHECK(refused({.model = "mlp", .schedule = "step:gamma=x"}).find("gamma = 'x'") != std::string::npos);
}

TEST_CASE("shares keep their first digits, and only nothing is 0 %") {
  CHECK(experiments::percent(0.123) == "12.3 %");
  CHECK(experiments::percent(0.00512) == "0.51 %");
  CHECK(experiments::percent(0.00012) == "0.012 %");
  CHECK(experiments::percent(0) == "0 %");
  CHECK(experiments::percent(1e-12) == "1e-10 %");
  CHECK(experiments::percent(std::numeric_limits<double>::quiet_NaN()) == "-");
  CHECK(experiments::octaves_alive_clause("hidden2", 15.25) ==
        "the largest gradient of hidden2 is 2^-9.8, 15.2 octaves above the 2^-25 where nearest-even rounding "
        "reaches zero");
  CHECK(experiments::octaves_alive_clause("encoder1", -6.3).find("2^-31.3, 6.3 octaves below") !=
        std::string::npos);
}
