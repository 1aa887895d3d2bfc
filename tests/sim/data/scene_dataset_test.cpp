#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/data/dataset.h"

namespace sim {
namespace {

constexpr Box left_half{.x_min = 0, .y_min = 0, .x_max = 0.5f, .y_max = 1, .label = 1};
constexpr Box middle{.x_min = 0.25f, .y_min = 0.25f, .x_max = 0.75f, .y_max = 0.75f, .label = 0};

/// Images of two channels with one pixel each.
SceneDataset::Contents small_scenes() {
  return {.name = "small",
          .image_shape = {.channels = 2, .height = 1, .width = 1},
          .classes = 2,
          .training = {.pixels = {0, 255, 51, 102, 1, 2}, .boxes = {{left_half}, {}, {middle, left_half}}},
          .test = {.pixels = {10, 20}, .boxes = {{middle}}}};
}

TEST_CASE("a batch holds pixels from 0 to 1 and the boxes of each image") {
  const SceneDataset scenes(small_scenes());
  CHECK(scenes.kind() == DataKind::scenes);
  CHECK(scenes.classes() == 2);
  CHECK(scenes.training_size() == 3);
  CHECK(scenes.test_size() == 1);
  const Batch batch = scenes.training_batch(std::vector<std::uint32_t>{2, 0});
  CHECK(batch.size == 2);
  CHECK(batch.inputs == std::vector<float>{1 / 255.0f, 2 / 255.0f, 0.0f, 1.0f});
  CHECK(batch.boxes == std::vector<std::vector<Box>>{{middle, left_half}, {left_half}});
  CHECK(batch.labels.empty());
  CHECK(scenes.test_batch(0, 1).boxes == std::vector<std::vector<Box>>{{middle}});
}

TEST_CASE("bad boxes are refused with image and box") {
  const auto error_with = [](Box box) {
    SceneDataset::Contents contents = small_scenes();
    contents.training.boxes[2][1] = box;
    try {
      const SceneDataset scenes(contents);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(error_with(middle) == "none");
  CHECK(
      error_with({.x_min = 0.5f, .y_min = std::numeric_limits<float>::quiet_NaN(), .x_max = 1, .y_max = 1}) ==
      "data 'small', training set, image 2, box 1: x 0.5 .. 1, y nan .. 1 found; "
      "0 <= min < max <= 1 is needed");
  CHECK(error_with({.x_min = 0.5f, .y_min = 0, .x_max = 0.5f, .y_max = 1}) ==
        "data 'small', training set, image 2, box 1: x 0.5 .. 0.5, y 0 .. 1 found; "
        "0 <= min < max <= 1 is needed");
  CHECK(error_with({.x_min = -0.5f, .y_min = 0, .x_max = 0.5f, .y_max = 1}) != "none");
  CHECK(error_with({.x_min = 0, .y_min = 0, .x_max = 0.5f, .y_max = 1.5f}) != "none");
  CHECK(error_with({.x_min = 0, .y_min = 0, .x_max = 1, .y_max = 1, .label = 2}) ==
        "data 'small', training set, image 2, box 1: label 2 found, allowed are 0 .. 1");
  CHECK(error_with({.x_min = 0, .y_min = 0, .x_max = 1, .y_max = 1, .label = -1}) ==
        "data 'small', training set, image 2, box 1: label -1 found, allowed are 0 .. 1");
}

TEST_CASE("pixels that do not fit the images are refused") {
  SceneDataset::Contents contents = small_scenes();
  contents.test.pixels.push_back(0);
  CHECK_THROWS_WITH_AS(SceneDataset{contents},
                       "data 'small', test set: 3 pixels found, 2 needed for 1 scenes",
                       std::invalid_argument);
  contents.test = {};
  CHECK_THROWS_AS(SceneDataset{contents}, std::invalid_argument);
}

}  // namespace
}  // namespace sim
