/// What the models of text must not do: look at later tokens or at other windows, drop in evaluation.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/sim/training_runs.h"

namespace {

constexpr std::size_t context = 16;

/// The logits of a batch, row by row.
std::vector<std::vector<double>> logits(const std::string& spec, const sim::Batch& batch,
                                        const sim::TapeOptions& options = {}, const char* policy = "fp32") {
  const std::unique_ptr<sim::Model> model = training_runs::make_model(spec);
  const sim::ModelState state = sim::ModelState::initial(*model, 1);
  std::vector<const sim::Tensor*> weights;
  for (const sim::Tensor& weight : state.weights) weights.push_back(&weight);
  sim::Buffers buffers;
  const sim::RecordedStep step = sim::record_step(*model, state.specs, weights, buffers, batch,
                                                  sim::find_precision_policy(policy), options);
  const sim::Tensor& output = step.tape.value(step.forward.outputs[0]);
  const std::size_t columns = output.shape().back();
  std::vector<std::vector<double>> rows(output.size() / columns);
  for (std::size_t i = 0; i < output.size(); ++i) rows[i / columns].push_back(output.element(i));
  return rows;
}

sim::Batch windows() {
  return training_runs::data_of(sim::DataKind::text).test_batch(0, 3);
}

}  // namespace

TEST_CASE("text models: a token changes the logits from its own place on, in its own window only") {
  for (const char* model : {"transformer", "lstm"}) {
    for (const char* policy : {"fp32", "amp"}) {
      const std::string spec = training_runs::small_spec(model);
      const sim::Batch batch = windows();
      sim::Batch changed = batch;
      constexpr std::size_t window = 1, place = 9;
      std::int32_t& token = changed.tokens[window * context + place];
      token = token == 0 ? 1 : 0;
      const auto before = logits(spec, batch, {}, policy), after = logits(spec, changed, {}, policy);
      REQUIRE(before.size() == 3 * context);
      for (std::size_t row = 0; row < before.size(); ++row) {
        const bool may_see_it = row / context == window && row % context >= place;
        INFO(model, " ", policy, " window ", row / context, " token ", row % context);
        CHECK((before[row] == after[row]) == !may_see_it);
      }
    }
  }
}

TEST_CASE("transformer: the same tokens at another place have other logits") {
  sim::Batch batch = windows();
  std::fill(batch.tokens.begin(), batch.tokens.end(), 3);
  const auto rows = logits(training_runs::small_spec("transformer"), batch);
  CHECK(rows[0] != rows[1]);
  CHECK(rows[0] == rows[context]);
}

TEST_CASE("transformer: dropout acts in training alone, anew at every step and the same at its repetition") {
  const std::string plain = training_runs::small_spec("transformer"), dropping = plain + ":dropout=0.25";
  const sim::Batch batch = windows();
  CHECK(logits(dropping, batch, {.training = false}) == logits(plain, batch, {.training = false}));
  CHECK(logits(plain, batch) == logits(plain, batch, {.training = false}));
  const auto step = [&](std::uint64_t seed, std::uint64_t number) {
    return logits(dropping, batch, {.seed = seed, .step = number});
  };
  CHECK(step(1, 1) == step(1, 1));
  CHECK(step(1, 1) != step(1, 2));
  CHECK(step(1, 1) != step(2, 1));
  CHECK(step(1, 1) != logits(plain, batch));
}
