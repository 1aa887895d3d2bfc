/// The detector's loss, worked out by hand for heads whose outputs are known.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/models/anchors.h"
#include "tests/sim/training_runs.h"

namespace {

constexpr std::size_t images = 5, per_cell = 4, anchors_per_image = 4 * (8 * 8 + 4 * 4);
/// Biases of the class heads, background first: the anchors of a cell differ in how sure they are.
constexpr double logits[per_cell][4]{{2, 0, 1, 0}, {0, 3, 0, -1}, {1, 1, 1, 1}, {-2, 0, 0.5, 4}};

double loss_of(std::size_t shape, std::int32_t label) {
  double sum = 0;
  for (const double z : logits[shape]) sum += std::exp(z);
  return std::log(sum) - logits[shape][label];
}

double smooth_l1(double x) {
  return std::abs(x) < 1 ? x * x / 2 : std::abs(x) - 0.5;
}

struct ByHand {
  double sum = 0;  ///< of all terms, not yet divided
  double positives = 0;
  double correct = 0;  ///< positives whose largest logit is theirs
};

/// The anchors of both maps, in the order of the network's outputs.
std::vector<sim::Anchor> all_anchors() {
  std::vector<sim::Anchor> anchors = sim::anchors_of_map(8, per_cell, 0.2f, 0.4f);
  const std::vector<sim::Anchor> coarse = sim::anchors_of_map(4, per_cell, 0.4f, 0.6f);
  anchors.insert(anchors.end(), coarse.begin(), coarse.end());
  return anchors;
}

ByHand work_out(const sim::Batch& batch) {
  const std::vector<sim::Anchor> anchors = all_anchors();
  REQUIRE(anchors.size() == anchors_per_image);
  ByHand result;
  for (const std::vector<sim::Box>& objects : batch.boxes) {
    const sim::AnchorTargets targets = sim::match_anchors(anchors, objects);
    std::vector<double> negatives;
    std::size_t positives = 0;
    for (std::size_t i = 0; i < anchors.size(); ++i) {
      const std::size_t shape = i % per_cell;
      const std::int32_t label = targets.labels[i];
      if (label == 0) {
        negatives.push_back(loss_of(shape, 0));
        continue;
      }
      ++positives;
      result.sum += loss_of(shape, label);
      for (const float offset : targets.offsets[i]) result.sum += smooth_l1(offset);
      result.correct += std::ranges::max_element(logits[shape]) - logits[shape] == label;
    }
    std::ranges::sort(negatives, std::greater<>());
    for (std::size_t i = 0; i < std::min(3 * positives, negatives.size()); ++i) result.sum += negatives[i];
    result.positives += static_cast<double>(positives);
  }
  return result;
}

/// Heads that say the same everywhere: their weights are 0, and the boxes are the anchors.
sim::ModelState with_known_heads(const sim::Model& model) {
  sim::ModelState state = sim::ModelState::initial(model, 1);
  for (std::size_t i = 0; i < state.specs.size(); ++i) {
    const std::string& name = state.specs[i].name;
    if (!name.starts_with("head")) continue;
    state.weights[i] = sim::Tensor::zeros(state.specs[i].shape, fp16::binary32);
    if (!name.ends_with("class.bias")) continue;
    for (std::size_t j = 0; j < state.weights[i].size(); ++j)
      state.weights[i].elements<float>()[j] = static_cast<float>(logits[j / 4][j % 4]);
  }
  return state;
}

struct Recorded {
  double loss;
  sim::Score score;
};

Recorded record(int normaliser, bool training, const sim::Batch& batch) {
  const std::unique_ptr<sim::Model> model =
      training_runs::make_model("ssd:channels=2:normaliser=" + std::to_string(normaliser));
  const sim::ModelState state = with_known_heads(*model);
  std::vector<const sim::Tensor*> weights;
  for (const sim::Tensor& weight : state.weights) weights.push_back(&weight);
  sim::Buffers buffers;
  const sim::RecordedStep step = sim::record_step(*model, state.specs, weights, buffers, batch,
                                                  sim::find_precision_policy("fp32"), {.training = training});
  return {step.tape.value(step.forward.loss).element(0), model->score(step.tape, step.forward, batch)};
}

}  // namespace

TEST_CASE("ssd: matched anchors, three hard negatives for each, and what the sum is divided by") {
  const sim::Batch batch = training_runs::data_of(sim::DataKind::scenes).test_batch(0, images);
  const ByHand expected = work_out(batch);
  REQUIRE(expected.positives > images);
  // Hundreds of binary32 terms: their sum is within a few of its last places.
  constexpr double epsilon = 1e-5;
  const double anchors = images * anchors_per_image;
  using enum sim::SsdOptions::Normaliser;
  CHECK(record(by_positives, true, batch).loss ==
        doctest::Approx(expected.sum / expected.positives).epsilon(epsilon));
  CHECK(record(by_anchors, true, batch).loss == doctest::Approx(expected.sum / anchors).epsilon(epsilon));
  CHECK(record(by_values, true, batch).loss ==
        doctest::Approx(expected.sum / (anchors * 8)).epsilon(epsilon));  // four classes, four offsets
  // Whatever training divides by, evaluations are comparable.
  for (const int normaliser : {by_positives, by_anchors, by_values}) {
    const Recorded evaluated = record(normaliser, false, batch);
    CHECK(evaluated.loss == doctest::Approx(expected.sum / expected.positives).epsilon(epsilon));
    CHECK(static_cast<double>(evaluated.score.predictions) == expected.positives);
    CHECK(static_cast<double>(evaluated.score.correct) == expected.correct);
  }
  CHECK(expected.correct > 0);
  CHECK(expected.correct < expected.positives);
}

TEST_CASE("ssd: an image without objects costs nothing and breaks nothing") {
  sim::Batch batch = training_runs::data_of(sim::DataKind::scenes).test_batch(0, 1);
  batch.boxes[0].clear();
  for (const bool training : {true, false}) {
    const Recorded empty = record(sim::SsdOptions::by_positives, training, batch);
    CHECK(empty.loss == 0);
    CHECK(empty.score.predictions == 0);
  }
}

TEST_CASE("ssd: images that cannot be halved four times are refused") {
  const auto scenes = [](int height, int width) {
    const sim::ImageShape shape{.channels = 1, .height = height, .width = width};
    const sim::Scenes one{.pixels = std::vector<std::uint8_t>(shape.size()), .boxes = {{{0, 0, 1, 1, 0}}}};
    return sim::SceneDataset(
        {.name = "scenes", .image_shape = shape, .classes = 1, .training = one, .test = one});
  };
  const sim::ModelRow& row = sim::find_model("ssd");
  CHECK(row.make(scenes(32, 32), {}) != nullptr);
  CHECK_THROWS_WITH_AS(row.make(scenes(32, 48), {}), doctest::Contains("32x48"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(row.make(scenes(40, 40), {}), doctest::Contains("side divisible by 16"),
                       std::invalid_argument);
}
