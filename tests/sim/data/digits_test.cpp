#include "sim/data/digits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "sim/data/digit_styles.h"

namespace sim {
namespace {

const ImageDataset& default_digits() {
  static const ImageDataset digits = draw_digits();
  return digits;
}

Batch all_training_images(const Dataset& dataset) {
  return BatchSampler(dataset, 0, dataset.training_size()).batch(0);
}

std::vector<std::uint8_t> pixels_of(const Batch& batch) {
  std::vector<std::uint8_t> pixels;
  for (float value : batch.inputs) pixels.push_back(static_cast<std::uint8_t>(value * 255.0f + 0.5f));
  return pixels;
}

std::uint64_t fnv1a_of_pixels(const Batch& batch) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::uint8_t pixel : pixels_of(batch)) hash = (hash ^ pixel) * 0x100000001b3u;
  return hash;
}

TEST_CASE("the built-in digits are the same bytes everywhere") {
  const ImageDataset& digits = default_digits();
  CHECK(digits.name() == "digits");
  CHECK(digits.image_shape() == ImageShape{.channels = 1, .height = 28, .width = 28});
  CHECK(digits.classes() == 10);
  CHECK(digits.training_size() == 8000);
  CHECK(digits.test_size() == 2000);
  CHECK(fnv1a_of_pixels(all_training_images(digits)) == 0xde71078367ea6d4c);
  CHECK(fnv1a_of_pixels(digits.test_batch(0, 2000)) == 0xd70349d00d82b43c);
}

TEST_CASE("every digit occurs equally often") {
  const ImageDataset& digits = default_digits();
  for (const Batch& batch : {all_training_images(digits), digits.test_batch(0, 2000)}) {
    std::array<std::size_t, 10> counts{};
    for (std::int32_t label : batch.labels) ++counts.at(static_cast<std::size_t>(label));
    for (std::size_t count : counts) CHECK(count == batch.size / 10);
  }
}

TEST_CASE("no two images are equal, neither within a set nor across training and test") {
  const ImageDataset& digits = default_digits();
  std::set<std::vector<std::uint8_t>> distinct;
  for (const Batch& batch : {all_training_images(digits), digits.test_batch(0, 2000)}) {
    const std::vector<std::uint8_t> pixels = pixels_of(batch);
    for (auto first = pixels.begin(); first != pixels.end(); first += 784)
      distinct.emplace(first, first + 784);
  }
  CHECK(distinct.size() == 10000);
}

TEST_CASE("the pixels resemble MNIST's: mean 0.13, standard deviation 0.31, four fifths background") {
  const Batch batch = all_training_images(default_digits());
  const double n = static_cast<double>(batch.inputs.size());
  double sum = 0, sum_of_squares = 0;
  for (float value : batch.inputs) {
    sum += value;
    sum_of_squares += value * value;
  }
  const double mean = sum / n;
  CHECK(mean == doctest::Approx(0.13).epsilon(0.1));
  CHECK(std::sqrt(sum_of_squares / n - mean * mean) == doctest::Approx(0.31).epsilon(0.05));
  CHECK(static_cast<double>(std::ranges::count(batch.inputs, 0.0f)) / n ==
        doctest::Approx(0.8).epsilon(0.05));
}

TEST_CASE("digits stay on the canvas: hardly any ink at its rim") {
  const Batch batch = all_training_images(default_digits());
  double total = 0, at_rim = 0;
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    const std::size_t row = i % 784 / 28, column = i % 28;
    total += batch.inputs[i];
    if (std::min(row, column) == 0 || std::max(row, column) == 27) at_rim += batch.inputs[i];
  }
  CHECK(at_rim < 0.01 * total);
}

TEST_CASE("images can be told apart by class, but not by their nearest class mean alone") {
  const ImageDataset& digits = default_digits();
  const Batch training = all_training_images(digits);
  std::vector<std::array<double, 784>> means(10);
  for (std::size_t image = 0; image < training.size; ++image) {
    auto& mean = means[static_cast<std::size_t>(training.labels[image])];
    for (std::size_t i = 0; i < 784; ++i)
      mean[i] += training.inputs[image * 784 + i] / (training.size / 10.0);
  }
  const Batch test = digits.test_batch(0, digits.test_size());
  int correct = 0;
  for (std::size_t image = 0; image < test.size; ++image) {
    const auto distance_to = [&](const std::array<double, 784>& mean) {
      double distance = 0;
      for (std::size_t i = 0; i < 784; ++i) distance += std::pow(test.inputs[image * 784 + i] - mean[i], 2);
      return distance;
    };
    const auto nearest = std::ranges::min_element(means, {}, distance_to) - means.begin();
    correct += nearest == test.labels[image];
  }
  const double accuracy = static_cast<double>(correct) / static_cast<double>(test.size);
  CAPTURE(accuracy);
  CHECK(accuracy > 0.6);
  CHECK(accuracy < 0.95);
}

TEST_CASE("a longer set begins with the shorter one, and another seed draws others") {
  const ImageDataset few = draw_digits({.training_size = 20, .test_size = 10});
  const ImageDataset more = draw_digits({.training_size = 30, .test_size = 20});
  CHECK(few.test_batch(0, 10).inputs == more.test_batch(0, 10).inputs);
  const ImageDataset others = draw_digits({.training_size = 20, .test_size = 10, .seed = 1});
  CHECK(few.test_batch(0, 10).inputs != others.test_batch(0, 10).inputs);
}

TEST_CASE("every style is a drawable stroke within its square") {
  for (int digit = 0; digit < 10; ++digit) {
    CAPTURE(digit);
    REQUIRE(digit_styles(digit).size() >= 2);
    for (const DigitStyle& style : digit_styles(digit)) {
      REQUIRE(!style.empty());
      for (const Stroke& stroke : style) {
        CHECK(stroke.size() >= 2);
        for (Point point : stroke) CHECK(std::clamp(point.x, 0.0f, 100.0f) == point.x);
        for (Point point : stroke) CHECK(std::clamp(point.y, 0.0f, 100.0f) == point.y);
      }
    }
  }
}

}  // namespace
}  // namespace sim
