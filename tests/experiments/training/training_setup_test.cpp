#include "experiments/training/training_setup.h"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>
#include <string>

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
  CHECK(setup.description() == "mlp:hidden1=8:hidden2=4 on digits, momentum, learning rate 0.05, batch 128");

  TrainingOptions given{.model = "mlp",
                        .optimizer = "adamw:weight_decay=0.5",
                        .schedule = "cosine:warmup_steps=2",
                        .learning_rate = 0.25,
                        .batch = 3,
                        .steps = 7};
  const TrainingSetup as_given(given);
  CHECK(as_given.steps() == 7);
  CHECK(as_given.description() ==
        "mlp on digits, adamw:weight_decay=0.5, learning rate 0.25, schedule cosine:warmup_steps=2, batch 3");
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

TEST_CASE("the description names what is not the usual, in the setup and in the choice of a run") {
  TrainingOptions options{.model = "lstm", .context = 32};
  const TrainingSetup setup(options);
  CHECK(setup.description() == "lstm on text, adam, learning rate 0.002, batch 16, context 32");
  CHECK(setup.description({.policy = "amp", .scaler = "dynamic", .seed = 3, .twin_every = 5}) ==
        setup.description());
  CHECK(setup.description({.accumulation_steps = 4, .clipping = {.max_norm = 1.5}}) ==
        setup.description() + ", 4 micro-batches a step, norm clipped at 1.5");
  CHECK(setup.description({.clipping = {.max_value = 0.5}, .clip_before_unscale = true}) ==
        setup.description() + ", values clipped at 0.5 before unscaling");
  CHECK(setup.description({.parallel = {.ranks = 4}}) ==
        setup.description() + ", 4 ranks, all-reduced by ring in fp16, divided before");
  CHECK(setup.description({.parallel = {.ranks = 2,
                                        .all_reduce = {.algorithm = sim::AllReduceAlgorithm::direct,
                                                       .precision = sim::AllReducePrecision::fp32},
                                        .looks_before_exchange = true,
                                        .sync_batch_norm = true}}) ==
        setup.description() +
            ", 2 ranks, all-reduced by direct in fp32, divided before, non-finite looked for "
            "before, batch norm synchronised");
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
  CHECK(refused({.model = "mlq"}).starts_with("--model: unknown model 'mlq'; did you mean 'mlp'? "));
  CHECK(refused({.model = "mlp:width=3"}).starts_with("--model: model 'mlp': unknown option 'width'"));
  CHECK(
      refused({.model = "mlp:hidden1"}).starts_with("--model: 'mlp:hidden1': option 'hidden1' has no value"));
  CHECK(refused({.data = "text", .model = "mlp"}) ==
        "--data: data 'text' holds text; allowed for images: builtin, digits, a directory with IDX files; "
        "models by data: images mlp, autoencoder, cnn; text transformer, lstm; scenes ssd");
  CHECK(refused({.data = "scenes", .model = "lstm"}).find("'scenes' holds scenes") != std::string::npos);
  CHECK(refused({.model = "mlp", .optimizer = "sgd:momentum=2"})
            .starts_with("--optimizer: optimizer 'sgd': momentum = 2"));
  CHECK(refused({.model = "mlp", .optimizer = "adm"})
            .starts_with("--optimizer: unknown optimizer 'adm'; did you mean 'adam'?"));
  CHECK(refused({.model = "mlp", .schedule = "step:gamma=x"}).starts_with("--schedule: 'step': gamma = 'x'"));

  TrainingOptions options{.model = "mlp"};
  const TrainingSetup setup(options);
  CHECK_THROWS_WITH_AS(setup.trainer({.policy = "O2:loss_scale=0"}),
                       doctest::Contains("--policy: policy 'O2'"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(setup.trainer({.scaler = "fairseq:foo=1"}),
                       doctest::Contains("--scalers: scaler 'fairseq': unknown option 'foo'; allowed: "),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      setup.trainer({.parallel = {.ranks = 3}}),
      "--batch: 128 examples are not the same number on each of 3 ranks; allowed with --ranks 3: "
      "its multiples",
      std::invalid_argument);
}

TEST_CASE("a warm-up that is asked for must end within the run, a model's own may be cut short") {
  const auto setup = [](TrainingOptions options) { TrainingSetup{options}; };
  CHECK_THROWS_WITH_AS(setup({.model = "mlp", .schedule = "cosine:warmup_steps=1000000", .steps = 20}),
                       "--schedule: schedule 'cosine': warmup_steps = 1000000 is longer than the run; "
                       "allowed with --steps 20: at "
                       "most 20",
                       std::invalid_argument);
  CHECK_NOTHROW(setup({.model = "mlp", .schedule = "cosine:warmup_steps=20", .steps = 20}));
  REQUIRE(sim::find_model("transformer").schedule == "constant:warmup_steps=50");
  CHECK_NOTHROW(setup({.model = "transformer:layers=1:width=8:heads=1", .steps = 20}));
}

TEST_CASE("seeds are told from the first to the last") {
  CHECK(experiments::seeds_text(0, 3) == "seeds 0 to 2");
  CHECK(experiments::seeds_text(7, 1) == "seed 7");
}
