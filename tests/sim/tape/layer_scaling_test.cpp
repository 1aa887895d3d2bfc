/// Layer scalers in whole training steps; their rules by themselves are tested in loss_scaling/.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/models/registry.h"
#include "tests/sim/training_runs.h"

using training_runs::run;
using training_runs::Run;
using training_runs::Setup;

TEST_CASE("layer scaling: factors that are powers of two cancel exactly in every model, forks included") {
  for (const sim::ModelRow& model : sim::models()) {
    for (const std::size_t micro_batches : {1, 3}) {
      Setup setup{.model = training_runs::small_spec(model.name),
                  .policy = "fp64",
                  .scaler = "none",
                  .options = {.batch = 4, .accumulation_steps = micro_batches, .seed = 3}};
      const Run plain = run(setup, 2);
      for (const char* scaler :
           {"ada_loss:method=5:fixed_scale=4:init_scale=2", "ada_loss", "ada_loss:recompute_interval=3",
            "fairscale_layerwise:init_scale=1024", "fairscale_layerwise:init_scale=8:growth_interval=1"}) {
        INFO(model.name, " ", scaler, " ", micro_batches);
        setup.scaler = scaler;
        CHECK(training_runs::same_state(run(setup, 2).trainer.state(), plain.trainer.state()));
      }
    }
  }
}

TEST_CASE(
    "layer scaling: what a layer's gradients carry is its scale, whatever the number of micro-batches") {
  for (const std::size_t micro_batches : {1, 4}) {
    const Run r = run({.scaler = "fairscale_layerwise:init_scale=1024",
                       .options = {.batch = 16 / micro_batches,
                                   .accumulation_steps = micro_batches,
                                   .seed = 3,
                                   .statistics_every = 1}},
                      1);
    for (std::size_t i = 0; i < r.trainer.sites().size(); ++i) {
      INFO(r.trainer.sites()[i].name);
      if (sim::is_weight(r.trainer.sites()[i])) CHECK(r.steps[0].statistics[i].scale == 1024);
    }
  }
}

TEST_CASE("layer scaling: a gradient outside of all layers that is not finite skips the step too") {
  const Run r = run({.model = training_runs::small_spec("transformer"),
                     .policy = "O2",
                     .scaler = "fairscale_layerwise:init_scale=1048576",
                     .options = {.batch = 4, .seed = 3}},
                    24);
  CHECK(r.steps.front().skipped());
  CHECK(!r.steps.back().skipped());
  for (const sim::StepRecord& step : r.steps) CHECK(std::isfinite(step.loss));
}

TEST_CASE("layer scaling: one bad micro-batch of several skips the step, and its cause is kept") {
  const Run r = run({.scaler = "fairscale_layerwise:init_scale=16777216",
                     .options = {.batch = 4, .accumulation_steps = 3, .seed = 3, .record_skips = true}},
                    1);
  REQUIRE(r.steps[0].skipped());
  CHECK(r.steps[0].skip->place == sim::SkipRecord::Place::gradient);
  CHECK(training_runs::same_state(r.trainer.state(), run({}, 0).trainer.state()));
}

TEST_CASE("layer scaling: AdaLoss keeps its factors for so many steps, not so many backward passes") {
  for (const std::size_t micro_batches : {1, 3}) {
    Run r = run({.scaler = "ada_loss:recompute_interval=4",
                 .options = {.batch = 4, .accumulation_steps = micro_batches, .seed = 3}},
                3);
    int ages = 0;
    for (const auto& [name, value] : r.trainer.save().layer_scaler) {
      if (!name.ends_with("/age")) continue;
      CHECK(value == 3);
      ++ages;
    }
    CHECK(ages == 3);
  }
}
