#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "experiments/scale_policy_order/findings.h"
#include "experiments/scale_policy_order/recipes.h"
#include "experiments/scale_policy_order/session.h"

using namespace experiments::scale_policy_order;
using experiments::Progress;
using experiments::RunChoice;
using experiments::TrainingOptions;
using experiments::TrainingSetup;

namespace {

/// S begins too high for the first steps and grows every other one, so that some are skipped.
const std::string dynamic = "dynamic:init_scale=1048576:growth_interval=4";

Setting small_setting() {
  return {.optimizer = "sgd:learning_rate=0.1",
          .max_norm = 0.5,
          .max_value = 0.001,
          .micro_batches = 3,
          .batch = 12,
          .scale_log2 = 20,
          .growth_interval = 4,
          .steps = 12,
          .seed = 3};
}

struct Network {
  TrainingOptions options;
  TrainingSetup setup;

  Network(std::string model, const std::string& optimizer, int batch)
      : options{.model = std::move(model), .optimizer = optimizer, .batch = batch, .steps = 12},
        setup(options) {
    options.schedule = "constant";
  }
};

/// A session's weights after a few steps against those of the simulator's own training loop.
void check_against_trainer(Network& network, const std::string& recipe, const Setting& setting,
                           const RunChoice& choice) {
  INFO(recipe);
  sim::Trainer trainer = network.setup.trainer(choice);
  Session session(network.setup, find_recipe(recipe), setting);
  std::size_t skipped = 0;
  for (std::uint64_t step = 0; step < setting.steps; ++step) {
    skipped += trainer.step().skipped();
    session.step();
  }
  CHECK(session.skipped() == skipped);
  CHECK(static_cast<double>(session.scale()) == trainer.scale());
  for (std::size_t i = 0; i < trainer.state().weights.size(); ++i)
    CHECK(session.state().weights[i].to_floats() == trainer.state().weights[i].to_floats());
}

std::vector<StepMeasurement> trace_of(const Network& network, const std::string& name,
                                      const Setting& setting) {
  const Recipe& recipe = find_recipe(name);
  const std::vector<const Recipe*> recipes{&recipe};
  Progress progress("test", 1, nullptr);
  return trace(network.setup, find_recipe(recipe.right), recipes, setting, progress).front();
}

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("scale_policy_order: recipes are named once and compared with a reference of the same kind") {
  std::vector<std::string_view> seen;
  for (const Recipe& recipe : recipes()) {
    INFO(recipe.name);
    CHECK(std::ranges::count(seen, recipe.name) == 0);
    seen.push_back(recipe.name);
    const Recipe& right = find_recipe(recipe.right);
    CHECK(std::ranges::count(seen, right.name) == 1);
    CHECK(right.is_right);
    CHECK(right.is_reference());
    CHECK(right.accumulates == recipe.accumulates);
    CHECK(right.two_losses == recipe.two_losses);
    CHECK(right.starts_too_high == recipe.starts_too_high);
  }
}

TEST_CASE("scale_policy_order: what GradScaler raises, as its source says") {
  const auto answer = [](const char* recipe) { return pytorch_answer(find_recipe(recipe)); };
  const std::string twice =
      "raises: unscale_() has already been called on this optimizer since the last update().";
  CHECK(answer("unscaled_twice") == twice);
  CHECK(answer("unscale_each_micro_batch") == twice);
  CHECK(answer("update_each_micro_batch") == "raises: No inf checks were recorded prior to update.");
  CHECK(answer("update_after_each_loss") == "raises: No inf checks were recorded prior to update.");
  CHECK(answer("infinity_sought_after_clip") == "own loop");
  CHECK(answer("optimizer_counts_skips") == "own loop");
  for (const char* silent :
       {"never_unscaled", "clip_before_unscale", "loss_not_divided", "step_each_micro_batch",
        "clip_each_micro_batch", "two_scalers_apart", "two_scalers_unscaled_in_place"})
    CHECK(answer(silent) == "silent");
  using enum Action;
  CHECK(pytorch_answer({.name = "stepped twice",
                        .right = "",
                        .each_micro_batch = {backward},
                        .at_boundary = {step, step, update}}) ==
        "raises: step() has already been called since the last update().");
  CHECK(pytorch_answer({.name = "unscaled late",
                        .right = "",
                        .each_micro_batch = {backward},
                        .at_boundary = {step, unscale, update}}) ==
        "raises: unscale_() is being called after step().");
}

TEST_CASE("scale_policy_order: predictions by hand") {
  StepFacts facts{.scales = {8, 8, 16, 16},
                  .divisor = 16,
                  .micro_batches = 4,
                  .norm = 4,
                  .max_norm = 2,
                  .cosine = 0.5,
                  .applied = 3,
                  .skipped = 2,
                  .warmup_steps = 8,
                  .total_steps = 28,
                  .normalises = false,
                  .beta1 = 0.5,
                  .beta2 = 0.75};
  const auto predicted = [&](const char* recipe) { return find_recipe(recipe).predicted(facts); };
  CHECK(predicted("never_unscaled") == 8);
  CHECK(predicted("unscaled_twice") == 0.125);
  CHECK(predicted("clip_before_unscale") == doctest::Approx(0.125).epsilon(1e-6));
  CHECK(predicted("clipped_never_unscaled") == 1);
  CHECK(predicted("unscale_each_micro_batch") == 0.25);
  CHECK(predicted("update_each_micro_batch") == 0.75);
  CHECK(predicted("loss_not_divided") == 4);
  CHECK(predicted("step_each_micro_batch") == 1);
  CHECK(predicted("clip_each_micro_batch") == 0.5 * 2 / 16 / 2);
  CHECK(predicted("schedule_counts_skips") == 1.5);  // 6/8 over 4/8
  // t = 4, k = 2: (1 - 1/16) / (1 - 1/64) * sqrt((1 - (3/4)^6) / (1 - (3/4)^4))
  CHECK(predicted("optimizer_counts_skips") ==
        doctest::Approx(0.9375 / 0.984375 * std::sqrt((1 - 729.0 / 4096) / (1 - 81.0 / 256))));
  facts.beta1 = 0;  // only the second moment is corrected
  CHECK(predicted("optimizer_counts_skips") ==
        doctest::Approx(std::sqrt((1 - 729.0 / 4096) / (1 - 81.0 / 256))));
  facts.beta2 = 0;
  CHECK(predicted("optimizer_counts_skips") == 1);
  facts.norm = 0.5;  // which right clipping leaves, and clipping 4 = 8 * 0.5 halves
  CHECK(predicted("clip_before_unscale") == doctest::Approx(0.5).epsilon(1e-6));
  CHECK(predicted("clipped_never_unscaled") == 4);
  facts.applied = 18, facts.skipped = 5;  // 10 and 15 of 20 steps down
  CHECK(predicted("schedule_counts_skips") == 0.5);
  facts.normalises = true;
  CHECK(predicted("never_unscaled") == 1);
  CHECK(predicted("step_each_micro_batch") == 4);
  CHECK(predicted("schedule_counts_skips") == 0.5);

  const std::vector<double> scales{8, 2};
  CHECK(predicted_loss_ratio(find_recipe("one_scaler"), scales) == 1);
  CHECK(predicted_loss_ratio(find_recipe("two_scalers_apart"), scales) == 1);
  CHECK(predicted_loss_ratio(find_recipe("two_scalers_summed"), scales) == 0.25);
  CHECK(predicted_loss_ratio(find_recipe("two_scalers_unscaled_in_place"), scales) == 2);
  CHECK(predicted_loss_ratio(find_recipe("update_after_each_loss"), scales) == 0.25);
  CHECK(std::isnan(predicted_loss_ratio(find_recipe("right"), scales)));
}

TEST_CASE("scale_policy_order: least squares by hand") {
  const Projection twice = project(std::vector<double>{2, 4}, std::vector<double>{1, 2});
  CHECK(twice.factor == 2);
  CHECK(twice.cosine == doctest::Approx(1));
  const Projection across = project(std::vector<double>{-3, 4}, std::vector<double>{2, 0});
  CHECK(across.factor == -1.5);
  CHECK(across.cosine == -0.6);
  const TwoFactors factors = project(std::vector<double>{5, 3, 7}, std::vector<double>{1, 1, 0},
                                     std::vector<double>{1, 0, 0});  // 3 of the first, 2 of the second
  CHECK(factors.first == doctest::Approx(3));
  CHECK(factors.second == doctest::Approx(2));
  CHECK(std::isnan(
      project(std::vector<double>{1, 2}, std::vector<double>{1, 1}, std::vector<double>{2, 2}).first));

  const Spread odd = spread({3, undefined, 1, 2, std::numeric_limits<double>::infinity()});
  CHECK(odd.lowest == 1);
  CHECK(odd.median == 2);
  CHECK(odd.highest == 3);
  CHECK(spread({4, 1, 2, 3}).median == 2.5);
  CHECK(std::isnan(spread({undefined}).median));
}

TEST_CASE("scale_policy_order: untyped gradients do what the simulator's types do") {
  const auto scaled = [](std::vector<float> values) {
    return sim::ScaledGradients{
        .sites = {{.name = "layer", .kind = sim::GradientSite::Kind::activation, .variable = {}},
                  {.name = "layer.weight", .kind = sim::GradientSite::Kind::weight, .variable = {}}},
        .values = {
            .gradients = {sim::Tensor::from({1}, std::vector<float>{7}), sim::Tensor::from({2}, values)},
            .scales = {8, 8},
            .rounding = {}}};
  };
  UntypedGradients gradients;
  CHECK(gradients.empty());
  gradients.add(scaled({8, 16}));
  gradients.divide(8);
  gradients.add(scaled({8, 24}));  // still scaled
  REQUIRE(gradients.values().parameters.size() == 1);
  CHECK(gradients.values().parameters[0].to_floats() == std::vector<float>{9, 26});
  UntypedGradients others;
  others.add(scaled({1, 1}));
  gradients.add(others);
  gradients.divide(2);
  CHECK(gradients.values().parameters[0].to_floats() == std::vector<float>{5, 13.5f});
}

TEST_CASE("scale_policy_order: recipes that the trainer knows give its bits") {
  const std::string model = "mlp:hidden1=16:hidden2=16";
  const Setting setting = small_setting();
  const sim::Clipping norm{.max_norm = setting.max_norm}, value{.max_value = setting.max_value};
  for (const std::string optimizer : {"sgd:learning_rate=0.1", "adam"}) {
    Setting its = setting;
    its.optimizer = optimizer;
    Network whole(model, optimizer, 12), micro(model, optimizer, 4);
    const RunChoice choice{.policy = "amp", .scaler = dynamic, .seed = setting.seed};
    RunChoice clipped = choice, clipped_early = choice, by_value = choice, accumulated = choice,
              accumulated_clipped = choice;
    clipped.clipping = clipped_early.clipping = accumulated_clipped.clipping = norm;
    by_value.clipping = value;
    clipped_early.clip_before_unscale = true;
    accumulated.accumulation_steps = accumulated_clipped.accumulation_steps = setting.micro_batches;
    check_against_trainer(whole, "right", its, choice);
    check_against_trainer(whole, "right_clipped", its, clipped);
    check_against_trainer(whole, "clip_before_unscale", its, clipped_early);
    check_against_trainer(whole, "right_clipped_by_value", its, by_value);
    check_against_trainer(micro, "right_accumulation", its, accumulated);
    check_against_trainer(micro, "right_accumulation_clipped", its, accumulated_clipped);
  }
}

TEST_CASE("scale_policy_order: two scalers apart are Apex with num_losses = 2") {
  Network detector("ssd:channels=2:normaliser=0", "sgd:learning_rate=0.1", 2);
  Setting setting = small_setting();
  setting.batch = 2;
  setting.steps = 3;
  setting.growth_interval = 1000;
  setting.scale_log2 = 12;
  setting.second_scale_below_log2 = 0;
  check_against_trainer(
      detector, "two_scalers_apart", setting,
      {.policy = "amp", .scaler = "apex_amp:num_losses=2:init_scale=4096", .seed = setting.seed});
}

TEST_CASE("scale_policy_order: schedules and optimizers that count skipped steps") {
  Network network("mlp:hidden1=16:hidden2=16", "adam", 12);
  network.options.schedule = "linear:warmup_steps=4";
  Setting setting = small_setting();
  setting.optimizer = "adam";
  setting.too_high_scale_log2 = 26;
  setting.warmup_steps = 4;
  const RunChoice choice{
      .policy = "amp", .scaler = "dynamic:init_scale=67108864:growth_interval=4", .seed = setting.seed};
  check_against_trainer(network, "right_skips", setting, choice);
  network.options.schedule += ":counts_skipped_steps=1";
  check_against_trainer(network, "schedule_counts_skips", setting, choice);

  for (const char* recipe : {"schedule_counts_skips", "optimizer_counts_skips"}) {
    std::size_t skipped = 0, other = 0;
    for (const StepMeasurement& step : trace_of(network, recipe, setting)) {
      skipped += !step.right_applied;
      if (!step.right_applied) continue;
      other += std::abs(step.predicted - 1) > 0.01;
      // Epsilon beside the root of the second moment is all that the prediction leaves out.
      CHECK(step.factor == doctest::Approx(step.predicted).epsilon(1e-3));
      CHECK(step.cosine == doctest::Approx(1).epsilon(1e-6));
    }
    CHECK(skipped > 0);
    CHECK(other > 0);
  }
}

TEST_CASE("scale_policy_order: measured factors of SGD are the predicted ones") {
  Network network("mlp:hidden1=16:hidden2=16", "sgd", 12);
  Setting setting = small_setting();
  setting.scale_log2 = 15;
  struct Row {
    std::string recipe;
    /// Allows for sums and products in FP32, for the 1e-6 beside a norm, and for FP16 where the loss is divided by 3.
    double tolerance;
  };
  for (const Row& row : {Row{"right", 0}, Row{"never_unscaled", 1e-6}, Row{"unscaled_twice", 1e-6},
                         Row{"clip_before_unscale", 1e-4}, Row{"clipped_never_unscaled", 1e-4},
                         Row{"loss_not_divided", 1e-3}, Row{"clip_each_micro_batch", 1e-4}}) {
    INFO(row.recipe);
    std::size_t compared = 0;
    for (const StepMeasurement& step : trace_of(network, row.recipe, setting)) {
      if (!step.right_applied || !step.applied) continue;
      ++compared;
      CHECK(std::abs(step.factor / step.predicted - 1) <= row.tolerance);
    }
    CHECK(compared > setting.steps / 2);
  }
}

TEST_CASE("scale_policy_order: Adam on S g is Adam on g with epsilon / S, bit for bit") {
  Network network("mlp:hidden1=16:hidden2=16", "adam", 12);
  Setting setting = small_setting(), same = setting;
  setting.scale_log2 = same.scale_log2 = 10;  // nothing overflows
  setting.growth_interval = same.growth_interval = 1000;
  setting.updates = same.updates = fp16::binary64;
  setting.optimizer = "adam:epsilon=0.0009765625";     // 2^-10
  same.optimizer = "adam:epsilon=9.5367431640625e-7";  // 2^-20
  Session wrong(network.setup, find_recipe("never_unscaled"), setting);
  Session right(network.setup, find_recipe("right"), same);
  for (int step = 0; step < 6; ++step) {
    wrong.step();
    right.step();
  }
  for (std::size_t i = 0; i < right.state().weights.size(); ++i) {
    const auto a = wrong.state().weights[i].elements<double>(),
               b = right.state().weights[i].elements<double>();
    CHECK(std::ranges::equal(a, b));
  }
}

TEST_CASE("scale_policy_order: weights of two losses") {
  Network detector("ssd:channels=2:normaliser=0", "sgd", 2);
  Setting setting = small_setting();
  setting.batch = 2;
  setting.steps = 2;
  setting.scale_log2 = 12;
  for (const std::string recipe :
       {"one_scaler", "two_scalers_apart", "two_scalers_summed", "two_scalers_unscaled_in_place"}) {
    INFO(recipe);
    std::size_t compared = 0;
    for (const StepMeasurement& step : trace_of(detector, recipe, setting)) {
      if (!step.right_applied || !step.applied) continue;
      ++compared;
      // The second loss is differentiated at 2^-8 of S, which flushes more of it.
      CHECK(step.loss_ratio == doctest::Approx(step.predicted_loss_ratio).epsilon(0.01));
    }
    CHECK(compared > 0);
  }
}

TEST_CASE("scale_policy_order: clipping values first hides an overflow that unscaling first finds") {
  Network network("mlp:hidden1=16:hidden2=16", "sgd", 12);
  Setting setting = small_setting();
  setting.scale_log2 = 18;  // infinities, but no NaN yet
  Session right(network.setup, find_recipe("right_clipped_by_value"), setting);
  Session wrong(network.setup, find_recipe("clip_value_before_unscale"), setting);
  CHECK(right.step().updates == 0);
  CHECK(right.skipped() == 1);
  const StepOutcome hidden = wrong.step();
  CHECK(hidden.updates == 1);
  CHECK(hidden.unseen == 1);
  CHECK(!wrong.has_diverged());

  Session nan(network.setup, find_recipe("infinity_sought_after_clip"), setting);
  CHECK(nan.step().unseen == 1);
  CHECK(nan.has_diverged());
}
