#include "sim/data/scenes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <vector>

namespace sim {
namespace {

constexpr int side = 64;

const SceneDataset& default_scenes() {
  static const SceneDataset scenes = draw_scenes();
  return scenes;
}

Batch all_training_scenes(const SceneDataset& scenes) {
  return BatchSampler(scenes, 0, scenes.training_size()).batch(0);
}

std::uint64_t fnv1a_of_scenes(const Batch& batch) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](float value, float unit) {
    hash = (hash ^ static_cast<std::uint64_t>(value * unit + 0.5f)) * 0x100000001b3u;
  };
  for (float value : batch.inputs) add(value, 255.0f);
  for (const auto& boxes : batch.boxes) {
    for (const Box& box : boxes) {
      for (float value : {box.x_min, box.y_min, box.x_max, box.y_max}) add(value, 0x1p24f);
      add(static_cast<float>(box.label), 1.0f);
    }
  }
  return hash;
}

TEST_CASE("the built-in scenes are the same bytes everywhere") {
  const SceneDataset& scenes = default_scenes();
  CHECK(scenes.name() == "scenes");
  CHECK(scenes.image_shape() == ImageShape{.channels = 3, .height = side, .width = side});
  CHECK(scenes.classes() == 3);
  CHECK(scenes.training_size() == 1500);
  CHECK(scenes.test_size() == 300);
  CHECK(fnv1a_of_scenes(all_training_scenes(scenes)) == 0x4e27d7ec2eb6f88c);
  CHECK(fnv1a_of_scenes(scenes.test_batch(0, 300)) == 0xc20d740804c0ba75);
}

TEST_CASE("one to three shapes, of three classes and 14 to 50 percent of the side") {
  std::array<int, 4> images_with{};
  std::array<int, 3> boxes_of{};
  float smallest = 1, largest = 0, rim = 1;
  for (const auto& boxes : all_training_scenes(default_scenes()).boxes) {
    REQUIRE(boxes.size() <= 3);
    ++images_with[boxes.size()];
    for (const Box& box : boxes) {
      ++boxes_of.at(static_cast<std::size_t>(box.label));
      const float width = box.x_max - box.x_min, height = box.y_max - box.y_min;
      CHECK(width == doctest::Approx(height).epsilon(1e-5));
      smallest = std::min(smallest, width);
      largest = std::max(largest, width);
      rim = std::min({rim, box.x_min, box.y_min, 1 - box.x_max, 1 - box.y_max});
    }
  }
  // 1500 images hold each number of shapes 500 +- 18 times; five standard deviations are allowed.
  CHECK(images_with[0] == 0);
  for (std::size_t count = 1; count <= 3; ++count) CHECK(std::abs(images_with[count] - 500) < 91);
  for (int count : boxes_of) CHECK(std::abs(count - 1000) < 5 * 26);
  CHECK(smallest >= 0.14f);
  CHECK(smallest < 0.145f);
  CHECK(largest <= 0.5f);
  CHECK(largest > 0.49f);
  CHECK(rim >= 0);
  CHECK(rim < 0.005f);
}

TEST_CASE("boxes share at most 30 percent of the smaller one, and some do") {
  double most = 0;
  for (const auto& boxes : all_training_scenes(default_scenes()).boxes) {
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Box &a = boxes[i], &b = boxes[j];
        const double width = std::max(0.0f, std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min));
        const double height = std::max(0.0f, std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min));
        const double smaller = std::min(a.x_max - a.x_min, b.x_max - b.x_min);
        most = std::max(most, width * height / (smaller * smaller));
      }
    }
  }
  CHECK(most <= 0.3 + 1e-5);
  CHECK(most > 0.28);
}

/// Scenes without noise, and which of them hold one shape, at least three pixels from the edge.
struct CleanScenes {
  Batch batch = draw_scenes({.training_size = 1, .test_size = 300, .noise = 0}).test_batch(0, 300);
  std::vector<std::size_t> lone;

  CleanScenes() {
    constexpr float margin = 3.0f / side;
    for (std::size_t image = 0; image < batch.size; ++image) {
      const Box box = batch.boxes[image][0];
      if (batch.boxes[image].size() == 1 && std::min(box.x_min, box.y_min) >= margin &&
          std::max(box.x_max, box.y_max) <= 1 - margin)
        lone.push_back(image);
    }
  }

  float pixel(std::size_t image, int channel, int row, int column) const {
    return batch
        .inputs[((image * 3 + static_cast<std::size_t>(channel)) * side + static_cast<std::size_t>(row)) *
                    side +
                static_cast<std::size_t>(column)];
  }
};

const CleanScenes& clean_scenes() {
  static const CleanScenes scenes;
  return scenes;
}

/// The columns or rows where second differences leave what a linear background gives them.
struct Extent {
  int first = side, last = -1;

  void add(int place) {
    first = std::min(first, place);
    last = std::max(last, place);
  }
};

TEST_CASE("a box is the extent of what is drawn") {
  const CleanScenes& scenes = clean_scenes();
  constexpr float rounding = 2.5f / 255;  // of three pixels, weights 1, 2, 1, half a step each; and a little
  REQUIRE(scenes.lone.size() > 60);
  for (const std::size_t image : scenes.lone) {
    CAPTURE(image);
    Extent columns, rows;
    for (int channel = 0; channel < 3; ++channel) {
      const auto second_difference = [&](int row, int column, int down, int across) {
        return std::fabs(scenes.pixel(image, channel, row - down, column - across) -
                         2 * scenes.pixel(image, channel, row, column) +
                         scenes.pixel(image, channel, row + down, column + across));
      };
      for (int i = 0; i < side; ++i) {
        for (int j = 1; j + 1 < side; ++j) {
          if (second_difference(i, j, 0, 1) > rounding) columns.add(j);
          if (second_difference(j, i, 1, 0) > rounding) rows.add(j);
        }
      }
    }
    // Pixel j covers j .. j + 1, and a second difference sees one pixel further. Of its outermost pixels a
    // disc or a triangle may cover too little to be seen.
    const auto check = [](Extent extent, float low, float high) {
      CHECK(static_cast<float>(extent.first) >= std::floor(side * low) - 1);
      CHECK(static_cast<float>(extent.first) <= side * low + 1);
      CHECK(static_cast<float>(extent.last) <= std::ceil(side * high));
      CHECK(static_cast<float>(extent.last) >= side * high - 2);
    };
    const Box box = scenes.batch.boxes[image][0];
    check(columns, box.x_min, box.x_max);
    check(rows, box.y_min, box.y_max);
  }
}

int middle(float low, float high) {
  return static_cast<int>(side * (low + high) / 2);
}

TEST_CASE("shapes stand out from the background that three corners of the image foretell") {
  const CleanScenes& scenes = clean_scenes();
  int checked = 0;
  for (const std::size_t image : scenes.lone) {
    const Box box = scenes.batch.boxes[image][0];
    const int row = middle(box.y_min, box.y_max), column = middle(box.x_min, box.x_max);
    float contrast = 0;
    bool is_clamped = false;
    for (int channel = 0; channel < 3; ++channel) {
      const float corner = scenes.pixel(image, channel, 0, 0);
      const float right = scenes.pixel(image, channel, 0, side - 1);
      const float lower = scenes.pixel(image, channel, side - 1, 0);
      const float background = corner + ((right - corner) * static_cast<float>(column) +
                                         (lower - corner) * static_cast<float>(row)) /
                                            (side - 1);
      contrast = std::max(contrast, std::fabs(scenes.pixel(image, channel, row, column) - background));
      for (float value : {corner, right, lower}) is_clamped = is_clamped || value == 0 || value == 1;
    }
    if (is_clamped) continue;
    CAPTURE(image);
    constexpr float tolerance = 0.02f;  // rounded pixels, and a pixel's centre beside that of the shape
    CHECK(contrast >= 0.3f - tolerance);
    ++checked;
  }
  CHECK(checked > 50);
}

TEST_CASE("classes differ in how much of their box they fill: 1, pi/4 and 1/2") {
  const CleanScenes& scenes = clean_scenes();
  std::array<double, 3> share{}, count{};
  for (const std::size_t image : scenes.lone) {
    // A shape is of one colour throughout, that at the centre of its box; hardly any background is the same.
    const Box box = scenes.batch.boxes[image][0];
    const int centre_row = middle(box.y_min, box.y_max), centre_column = middle(box.x_min, box.x_max);
    int inside = 0;
    for (int row = 0; row < side; ++row) {
      for (int column = 0; column < side; ++column) {
        bool is_same = true;
        for (int channel = 0; channel < 3; ++channel) {
          is_same = is_same && scenes.pixel(image, channel, row, column) ==
                                   scenes.pixel(image, channel, centre_row, centre_column);
        }
        inside += is_same;
      }
    }
    const double width = side * (box.x_max - box.x_min);
    const double partly_covered = 4 * width;  // pixels along the box's rim, about half of each on average
    share[static_cast<std::size_t>(box.label)] += (inside + 0.5 * partly_covered) / (width * width);
    ++count[static_cast<std::size_t>(box.label)];
  }
  CHECK(share[0] / count[0] == doctest::Approx(1.0).epsilon(0.1));
  CHECK(share[1] / count[1] == doctest::Approx(0.785).epsilon(0.1));
  CHECK(share[2] / count[2] == doctest::Approx(0.5).epsilon(0.15));
}

TEST_CASE("noise is normal, of the standard deviation asked for") {
  const ScenesOptions without{.training_size = 1, .test_size = 50, .noise = 0};
  ScenesOptions with = without;
  with.noise = 0.05f;
  const Batch clean = draw_scenes(without).test_batch(0, 50);
  const Batch noisy = draw_scenes(with).test_batch(0, 50);
  CHECK(clean.boxes == noisy.boxes);
  double sum = 0, squares = 0, within = 0, n = 0;
  for (std::size_t i = 0; i < clean.inputs.size(); ++i) {
    if (clean.inputs[i] < 0.3f || clean.inputs[i] > 0.7f) continue;  // six deviations from what is clamped
    const double difference = noisy.inputs[i] - clean.inputs[i];
    sum += difference;
    squares += difference * difference;
    within += std::fabs(difference) <= 0.05;
    ++n;
  }
  REQUIRE(n > 100'000);
  CHECK(std::fabs(sum / n) < 5 * 0.05 / std::sqrt(n));
  // Rounding twice to steps of 1/255 adds 2 / 12 of a squared step to the variance.
  CHECK(std::sqrt(squares / n - 2.0 / 12 / (255.0 * 255.0)) == doctest::Approx(0.05).epsilon(0.01));
  CHECK(within / n == doctest::Approx(0.683).epsilon(0.02));
}

TEST_CASE("a longer set begins with the shorter one, and another seed draws others") {
  const SceneDataset one = draw_scenes({.training_size = 1, .test_size = 1});
  const SceneDataset more = draw_scenes({.training_size = 1, .test_size = 9});
  CHECK(one.test_batch(0, 1).inputs == more.test_batch(0, 1).inputs);
  CHECK(more.test_batch(0, 9).inputs == default_scenes().test_batch(0, 9).inputs);
  CHECK(more.test_batch(0, 9).boxes == default_scenes().test_batch(0, 9).boxes);
  const SceneDataset other = draw_scenes({.training_size = 1, .test_size = 1, .seed = 1});
  CHECK(one.test_batch(0, 1).inputs != other.test_batch(0, 1).inputs);
  CHECK(one.test_batch(0, 1).inputs != one.training_batch(std::vector<std::uint32_t>{0}).inputs);
}

TEST_CASE("impossible noise is refused") {
  CHECK_THROWS_WITH_AS(draw_scenes({.noise = -1}), "noise: -1 is not allowed; 0 .. 1", std::invalid_argument);
  CHECK_THROWS_AS(draw_scenes({.noise = 2}), std::invalid_argument);
  CHECK_THROWS_AS(draw_scenes({.noise = std::numeric_limits<float>::quiet_NaN()}), std::invalid_argument);
}

}  // namespace
}  // namespace sim
