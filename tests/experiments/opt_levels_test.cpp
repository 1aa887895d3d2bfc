#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "experiments/opt_levels/findings.h"
#include "experiments/opt_levels/memory.h"
#include "experiments/opt_levels/operations.h"
#include "experiments/opt_levels/recipes.h"
#include "fp16/formats.h"
#include "tests/experiments/silent_run.h"

using namespace experiments::opt_levels;
using experiments::TrainingBudget;
using experiments::TrainingOptions;
using experiments::TrainingSetup;

namespace {

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  for (const Recipe& recipe : parse_recipes(list)) names.push_back(recipe.name);
  return names;
}

TrainingOptions small_network(int batch = 2, int steps = 3) {
  return {.model = "mlp:hidden1=8:hidden2=4", .learning_rate = 0.05, .batch = batch, .steps = steps};
}

/// What happens in an operation, without what the gradients are in.
struct Use {
  std::string operation, format, operands;
  int operand_bits;
  std::uint64_t calls, values, bytes;
  bool operator==(const Use&) const = default;
};

std::vector<Use> uses_of(const TrainingSetup& setup, std::string_view recipe) {
  std::vector<Use> uses;
  for (const OperationUse& use : operation_uses(setup, parse_recipes(recipe).back(), 0)) {
    uses.push_back({use.operation, std::string(fp16::name_of(use.format)), use.operands, use.operand_bits,
                    use.calls, use.values, use.bytes});
  }
  return uses;
}

}  // namespace

TEST_CASE("opt_levels: recipes are policies and two of its own, the reference before all others") {
  CHECK(names_in("O2,fp16:reductions=binary32") ==
        std::vector<std::string>{"O0", "O2", "fp16:reductions=binary32"});
  CHECK(names_in("bf16,O0") == std::vector<std::string>{"O0", "bf16"});
  CHECK(names_in("O0") == std::vector<std::string>{"O0"});
  const std::vector<std::string> all = names_in("all");
  CHECK(all.size() == sim::precision_policies().size() + 2);
  CHECK(all.front() == "O0");
  for (const char* wrong : {"O4", "O1,", "O1,O1", "O0,O0", "O1:loss_scale=0", "fp8_unscaled:a=1"}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_recipes(wrong), std::invalid_argument);
  }
  CHECK_THROWS_WITH(parse_recipes("O1,O1"), "--recipes: 'O1' stands there twice; allowed: each once");
}

TEST_CASE("opt_levels: the default recipes have the scalers of Apex, PyTorch and Transformer Engine") {
  const std::vector<std::string> scalers{"none", "apex_amp", "apex_amp", "none",    "dynamic",
                                         "none", "none",     "none",     "delayed", "casts at scale 1",
                                         "none", "current",  "none",     "none"};
  const std::vector<Recipe> recipes = parse_recipes(Options{}.recipes);
  REQUIRE(recipes.size() == scalers.size());
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    INFO(recipes[i].name);
    CHECK(recipes[i].scaler == scalers[i]);
  }
}

TEST_CASE("opt_levels: O0 is fp32 in every role") {
  CHECK(sim::roles_of(sim::find_precision_policy("O0")) == sim::roles_of(sim::find_precision_policy("fp32")));
}

TEST_CASE(
    "opt_levels: fp8_unscaled casts at the scale 1 whatever the values, fp4_tensor with one for a tensor") {
  const Recipe unscaled = parse_recipes("fp8_unscaled").back();
  sim::AnyScaler scaler = unscaled.make_scaler();
  sim::TensorScaler& casts = *std::get<std::unique_ptr<sim::TensorScaler>>(scaler);
  for (const float largest : {1e-30f, 1.0f, 1e30f}) {
    CHECK(casts.scale("conv1.weights", fp16::e4m3, largest) == 1);
    casts.end_step();
  }
  CHECK(unscaled.policy.operands.gradients.element == fp16::e5m2);

  const Recipe tensor = parse_recipes("fp4_tensor").back();
  scaler = tensor.make_scaler();
  // E2M1 ends at 6, so that a largest value of 1.5 is multiplied by 4.
  CHECK(std::get<std::unique_ptr<sim::TensorScaler>>(scaler)->scale("x", fp16::e2m1, 1.5f) == 4);
  CHECK(sim::name_of(tensor.policy.operands.weights) == "e2m1 per tensor");
  CHECK(sim::name_of(tensor.policy.operands.gradients) == "e2m1 per tensor, stochastic");
}

TEST_CASE("opt_levels: the largest batch in a budget, of lines and of stairs") {
  struct Case {
    std::uint64_t fixed, each, stair;  ///< bytes; once more every ten examples
  };
  for (const auto& [fixed, each, stair] :
       {Case{0, 1, 0}, Case{1000, 7, 0}, Case{50, 3, 400}, Case{9, 0, 5}}) {
    int calls = 0;
    const auto bytes_of = [&, fixed = fixed, each = each, stair = stair](int batch) {
      ++calls;
      return fixed + each * static_cast<std::uint64_t>(batch) +
             stair * static_cast<std::uint64_t>(batch / 10);
    };
    for (const std::uint64_t budget : {0, 1, 9, 60, 1006, 1007, 1013, 1014, 1500, 5000, 100000}) {
      for (const int limit : {1, 2, 3, 100, 700}) {
        INFO(fixed, " + ", each, " b, stairs of ", stair, ": ", budget, " bytes, at most ", limit);
        int expected = 0;
        for (int batch = 1; batch <= limit; ++batch) {
          if (bytes_of(batch) <= budget) expected = batch;
        }
        calls = 0;
        const BatchBytes found = largest_batch(budget, limit, bytes_of);
        CHECK(found.batch == expected);
        if (expected > 0) CHECK(found.bytes == bytes_of(expected));
        if (stair == 0) CHECK(calls <= 1 + 12 + 3);  // doubling to the limit, and the line
      }
    }
  }
}

TEST_CASE("opt_levels: a step's bytes, role by role, of a network that can be counted by hand") {
  TrainingOptions options = small_network();
  const TrainingSetup setup(options);
  constexpr std::uint64_t parameters = 784 * 8 + 8 + 8 * 4 + 4 + 4 * 10 + 10, inputs = 784;
  // Each example: inputs, two layers' outputs, each with its relu, the logits.
  constexpr std::uint64_t values = inputs + 2 * (8 + 4) + 10;
  for (const auto& [recipe, bytes_of_a_value] : {std::pair("O0", 4), {"O3", 2}}) {
    const Recipe made = parse_recipes(recipe).back();
    const std::uint64_t one = measured_bytes(setup, made, 1), two = measured_bytes(setup, made, 2),
                        nine = measured_bytes(setup, made, 9);
    CHECK(nine - two == 7 * (two - one));
    const auto size = static_cast<std::uint64_t>(bytes_of_a_value);
    CHECK(two - one >= values * size);           // activations, then the gradients of layers
    CHECK(two - one <= 2 * values * size + 64);  // and what the loss keeps and hands on in FP32
    // Weights, momentum, gradients as they come from backward and as they are unscaled.
    CHECK(one - (two - one) >= 4 * parameters * size);
    CHECK(one - (two - one) <= 4 * parameters * size + 64);
  }
}

TEST_CASE("opt_levels: the formats of an mlp's operations under Apex's levels and narrow operands") {
  TrainingOptions options = small_network();
  const TrainingSetup setup(options);
  constexpr std::uint64_t parameters = 784 * 8 + 8 + 8 * 4 + 4 + 4 * 10 + 10;
  const Use loss{"softmax_cross_entropy", "binary32", "as stored", 32, 1, 1, 4};
  CHECK(uses_of(setup, "O0") ==
        std::vector<Use>{{"parameter", "binary32", "as stored", 32, 6, parameters, 4 * parameters},
                         {"input", "binary32", "as stored", 32, 1, 1568, 6272},
                         {"linear", "binary32", "as stored", 32, 3, 44, 176},
                         {"relu", "binary32", "as stored", 32, 2, 24, 96},
                         loss});
  const auto of = [&](std::string_view recipe, std::string_view operation) {
    std::vector<Use> uses = uses_of(setup, recipe);
    std::erase_if(uses, [&](const Use& use) { return use.operation != operation; });
    return uses;
  };
  CHECK(of("O1", "parameter") ==
        std::vector<Use>{{"parameter", "binary32", "as stored", 32, 6, parameters, 4 * parameters}});
  CHECK(of("O3", "parameter") ==
        std::vector<Use>{{"parameter", "binary16", "as stored", 16, 6, parameters, 2 * parameters}});
  for (const char* recipe : {"O1", "O2", "O3", "amp", "fp16"}) {
    INFO(recipe);
    CHECK(of(recipe, "linear") == std::vector<Use>{{"linear", "binary16", "as stored", 16, 3, 44, 88}});
    CHECK(of(recipe, "relu") == std::vector<Use>{{"relu", "binary16", "as stored", 16, 2, 24, 48}});
    CHECK(of(recipe, "softmax_cross_entropy") == std::vector<Use>{loss});
  }
  CHECK(of("fp8", "linear") == std::vector<Use>{{"linear", "bfloat16", "e4m3 per tensor", 8, 3, 44, 88}});
  CHECK(of("nvfp4", "linear") == std::vector<Use>{{"linear", "bfloat16", "nvfp4", 4, 3, 44, 88}});
  CHECK(of("nvfp4", "relu") == std::vector<Use>{{"relu", "bfloat16", "as stored", 16, 2, 24, 48}});
}

TEST_CASE("opt_levels: budgets of larger batches") {
  const TrainingBudget given{.batch = 32, .steps = 300, .learning_rate = 0.25};
  const auto check = [](const TrainingBudget& found, int batch, int steps, double rate) {
    CHECK(found.batch == batch);
    CHECK(found.steps == steps);
    CHECK(found.learning_rate == rate);
  };
  check(with_batch(given, 32, {}), 32, 300, 0.25);
  check(with_batch(given, 64, {}), 64, 150, 0.5);
  check(with_batch(given, 60, {}), 60, 160, 0.46875);
  check(with_batch(given, 64, {.equal_steps = true}), 64, 300, 0.5);
  check(with_batch(given, 64, {.keep_learning_rate = true}), 64, 150, 0.25);
  check(with_batch(given, 32 * 1000, {}), 32000, 1, 250);
}

TEST_CASE("opt_levels: every recipe runs at both batches, within the bytes, beside the reference's") {
  TrainingOptions training = small_network(8, 4);
  const TrainingSetup setup(training);
  const Options options{.training = training, .recipes = "O1,O2,fp8_unscaled", .seeds = 2, .twin_every = 2};
  test::SilentRun quiet(2);
  const Findings found = measure(setup, options, quiet.run);
  REQUIRE(found.recipes.size() == 4);
  CHECK(found.equal_bytes[0].batch.batch == 8);
  CHECK(found.equal_bytes[0].runs == 0);
  CHECK(found.equal_bytes[0].batch.bytes == found.budget_bytes);
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    INFO(found.recipes[i].name);
    CHECK(found.groups[i].recipe == i);
    CHECK(found.groups[i].budget.batch == 8);
    CHECK(found.at_default(i).values("steps") == std::vector<double>{4, 4});
    const EqualBytes& equal = found.equal_bytes[i];
    REQUIRE(equal.batch.batch > 0);
    CHECK(equal.batch.bytes <= found.budget_bytes);
    CHECK(measured_bytes(setup, found.recipes[i], equal.batch.batch + 1) > found.budget_bytes);
    // The step that was measured takes what a whole run does.
    for (const double bytes : found.groups[equal.runs].group.values("held_bytes"))
      CHECK(bytes == static_cast<double>(equal.batch.bytes));
    CHECK(found.groups[equal.runs].recipe == i);
    CHECK(found.groups[equal.reference].recipe == 0);
    CHECK(found.groups[equal.reference].budget.batch == equal.batch.batch);
  }
  CHECK(found.at_default(0).estimate("mean_relative_error").mean == 0);
  CHECK(found.at_default(1).estimate("mean_relative_error").mean > 0);
  // An mlp has no batch norm, so that O1 and O2 compute the same.
  CHECK(found.at_default(1).values("final_loss") == found.at_default(2).values("final_loss"));
  CHECK(found.difference(found.at_default(2), found.at_default(1)).mean == 0);
}

TEST_CASE("opt_levels: under Adam O3 has no finite loss from the second step on, and O2 has") {
  TrainingOptions training = small_network(8, 3);
  training.optimizer = "adam";
  const TrainingSetup setup(training);
  test::SilentRun quiet(2);
  const Findings found =
      measure(setup, {.training = training, .recipes = "O2,O3", .seeds = 1, .twin_every = 1}, quiet.run);
  CHECK(found.at_default(1).values("first_nonfinite_step") == std::vector<double>{0});
  CHECK(found.at_default(2).values("first_nonfinite_step") == std::vector<double>{2});
  CHECK(earliest_nonfinite_step(found.at_default(1)) == 0);
  experiments::SeedGroup seeds;
  for (const double step : {0.0, 5.0, 3.0})
    seeds.results.push_back({.values = {{"first_nonfinite_step", step}}, .abort_reason = {}});
  CHECK(earliest_nonfinite_step(seeds) == 3);
  CHECK(found.at_default(2).diverged_runs() == 1);
}
