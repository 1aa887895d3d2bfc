#include "sim/data/dataset.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace sim {
namespace {

/// Images of one row and two pixels: {number, 255 - number}, labelled number mod 5.
LabelledImages numbered_images(int first, int count) {
  LabelledImages images;
  for (int number = first; number < first + count; ++number) {
    images.pixels.push_back(static_cast<std::uint8_t>(number));
    images.pixels.push_back(static_cast<std::uint8_t>(255 - number));
    images.labels.push_back(static_cast<std::uint8_t>(number % 5));
  }
  return images;
}

ImageDataset::Contents numbered_contents() {
  return {.name = "numbered",
          .image_shape = {.channels = 1, .height = 1, .width = 2},
          .classes = 5,
          .training = numbered_images(0, 7),
          .test = numbered_images(100, 4)};
}

int number_of(const Batch& batch, std::size_t row) {
  return static_cast<int>(batch.inputs[row * 2] * 255.0f + 0.5f);
}

/// The numbers of the first `count` images of the endless pass, read in batches of `batch_size`.
std::vector<int> pass(const Dataset& dataset, std::uint64_t seed, std::size_t count, std::size_t batch_size) {
  std::vector<int> numbers;
  for (std::uint64_t step = 0; numbers.size() < count; ++step) {
    const Batch batch = BatchSampler(dataset, seed, batch_size).batch(step);
    for (std::size_t row = 0; row < batch.size; ++row) numbers.push_back(number_of(batch, row));
  }
  numbers.resize(count);
  return numbers;
}

TEST_CASE("a batch holds pixels from 0 to 1, row by row, and their labels") {
  const ImageDataset dataset(numbered_contents());
  CHECK(dataset.training_size() == 7);
  CHECK(dataset.test_size() == 4);
  CHECK(dataset.image_shape().size() == 2);
  const Batch batch = dataset.test_batch(1, 2);
  CHECK(batch.size == 2);
  CHECK(batch.inputs == std::vector<float>{101 / 255.0f, 154 / 255.0f, 102 / 255.0f, 153 / 255.0f});
  CHECK(batch.labels == std::vector<std::int32_t>{1, 2});
  const Batch training = BatchSampler(dataset, 0, 7).batch(0);
  for (std::size_t row = 0; row < 7; ++row) CHECK(training.labels[row] == number_of(training, row) % 5);
}

TEST_CASE("every epoch visits every image once, in an order of its own") {
  const ImageDataset dataset(numbered_contents());
  const std::vector<int> numbers = pass(dataset, 1, 35, 7);
  std::vector<std::vector<int>> epochs;
  for (auto first = numbers.begin(); first != numbers.end(); first += 7)
    epochs.emplace_back(first, first + 7);
  for (const std::vector<int>& epoch : epochs) {
    std::vector<int> sorted = epoch;
    std::ranges::sort(sorted);
    CHECK(sorted == std::vector<int>{0, 1, 2, 3, 4, 5, 6});
  }
  std::ranges::sort(epochs);
  CHECK(std::ranges::adjacent_find(epochs) == epochs.end());
}

TEST_CASE("the pass does not depend on the batch size, and batches straddle epochs") {
  const ImageDataset dataset(numbered_contents());
  const std::vector<int> one_by_one = pass(dataset, 1, 35, 1);
  for (std::size_t batch_size : {2, 5, 7, 11, 20, 35}) {
    CAPTURE(batch_size);
    CHECK(pass(dataset, 1, 35, batch_size) == one_by_one);
  }
}

TEST_CASE("a batch depends on seed and step, not on earlier calls") {
  const ImageDataset dataset(numbered_contents());
  BatchSampler sampler(dataset, 1, 5);
  const Batch before = sampler.batch(9);
  sampler.batch(0);
  const Batch after = sampler.batch(9);
  CHECK(before.inputs == after.inputs);
  CHECK(before.labels == after.labels);
  CHECK(BatchSampler(dataset, 1, 5).batch(9).inputs == after.inputs);
  CHECK(pass(dataset, 1, 35, 5) != pass(dataset, 2, 35, 5));
}

TEST_CASE("the order of a pass in literal values") {
  CHECK(pass(ImageDataset(numbered_contents()), 42, 14, 7) ==
        std::vector<int>{0, 5, 4, 6, 3, 2, 1, 5, 2, 6, 0, 4, 3, 1});
}

TEST_CASE("contents that do not fit together are refused") {
  ImageDataset::Contents no_images = numbered_contents();
  no_images.test = {};
  CHECK_THROWS_WITH_AS(
      ImageDataset{no_images},
      "data 'numbered', test set: no images or images without pixels; at least one of each is needed",
      std::invalid_argument);
  ImageDataset::Contents too_few_pixels = numbered_contents();
  too_few_pixels.training.pixels.pop_back();
  CHECK_THROWS_WITH_AS(ImageDataset{too_few_pixels},
                       "data 'numbered', training set: 13 pixels found, 14 needed for 7 labels",
                       std::invalid_argument);
  ImageDataset::Contents bad_label = numbered_contents();
  bad_label.test.labels[2] = 5;
  CHECK_THROWS_WITH_AS(ImageDataset{bad_label},
                       "data 'numbered', test set: label 5 found, allowed are 0 .. 4", std::invalid_argument);
}

TEST_CASE("examples beyond the end are refused") {
  const ImageDataset dataset(numbered_contents());
  CHECK(dataset.test_batch(4, 0).size == 0);
  CHECK_THROWS_WITH_AS(dataset.test_batch(2, 3),
                       "data 'numbered': 3 test examples from 2 on asked for, there are 4",
                       std::invalid_argument);
  CHECK_THROWS_AS(dataset.test_batch(5, 0), std::invalid_argument);
  CHECK_THROWS_AS(dataset.test_batch(1, ~std::size_t{0}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(dataset.training_batch(std::array<std::uint32_t, 3>{0, 6, 7}),
                       "data 'numbered': training example 7 asked for, allowed are 0 .. 6",
                       std::invalid_argument);
}

TEST_CASE("a model is told what its data hold instead of what it needs") {
  const ImageDataset images(numbered_contents());
  CHECK(&require_images(images, "mlp") == &images);
  CHECK_THROWS_WITH_AS(require_text(images, "transformer"),
                       "model transformer needs text; data 'numbered' holds images", std::invalid_argument);
  CHECK_THROWS_WITH_AS(require_scenes(images, "ssd"), "model ssd needs scenes; data 'numbered' holds images",
                       std::invalid_argument);
  const TextDataset text({.name = "letters", .text = std::string(40, 'a'), .context = 3});
  CHECK(&require_text(text, "lstm") == &text);
  CHECK_THROWS_WITH_AS(require_images(text, "mlp"), "model mlp needs images; data 'letters' holds text",
                       std::invalid_argument);
}

}  // namespace
}  // namespace sim
