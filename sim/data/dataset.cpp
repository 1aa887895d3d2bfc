#include "sim/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "sim/random.h"

namespace sim {
namespace {

void check(const Dataset::Contents& contents, std::string_view set, const LabelledImages& images) {
  const auto require = [&](bool condition, const std::string& message) {
    if (!condition)
      throw std::invalid_argument(fmt::format("data '{}', {} set: {}", contents.name, set, message));
  };
  const std::size_t pixels = images.labels.size() * contents.image_shape.size();
  require(pixels > 0, "no images or images without pixels; at least one of each is needed");
  require(images.pixels.size() == pixels, fmt::format("{} pixels found, {} needed for {} labels",
                                                      images.pixels.size(), pixels, images.labels.size()));
  const int largest = *std::ranges::max_element(images.labels);
  require(largest < contents.classes,
          fmt::format("label {} found, allowed are 0 .. {}", largest, contents.classes - 1));
}

constexpr std::array<float, 256> pixel_values = [] {
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 255.0f;
  return values;
}();

void append_image(Batch& batch, const LabelledImages& images, std::size_t index, std::size_t image_size) {
  const std::span pixels = std::span(images.pixels).subspan(index * image_size, image_size);
  for (std::uint8_t pixel : pixels) batch.inputs.push_back(pixel_values[pixel]);
  batch.labels.push_back(images.labels[index]);
  ++batch.size;
}

Batch empty_batch(std::size_t capacity, std::size_t image_size) {
  Batch batch;
  batch.inputs.reserve(capacity * image_size);
  batch.labels.reserve(capacity);
  return batch;
}

}  // namespace

Dataset::Dataset(Contents contents) : contents_(std::move(contents)) {
  check(contents_, "training", contents_.training);
  check(contents_, "test", contents_.test);
}

std::vector<std::uint32_t> Dataset::epoch_order(std::uint64_t seed, std::uint64_t epoch) const {
  const RandomStream stream(seed, fmt::format("training order of epoch {}", epoch));
  return permutation(stream, static_cast<std::uint32_t>(training_size()));
}

Batch Dataset::training_images(std::span<const std::uint32_t> indices) const {
  Batch batch = empty_batch(indices.size(), image_shape().size());
  for (const std::uint32_t index : indices)
    append_image(batch, contents_.training, index, image_shape().size());
  return batch;
}

Batch BatchSampler::batch(std::uint64_t step) {
  std::vector<std::uint32_t> indices;
  const std::uint64_t size = dataset_->training_size();
  for (std::uint64_t position = step * batch_size_; indices.size() < batch_size_; ++position) {
    if (order_.empty() || position / size != epoch_) {
      epoch_ = position / size;
      order_ = dataset_->epoch_order(seed_, epoch_);
    }
    indices.push_back(order_[position % size]);
  }
  return dataset_->training_images(indices);
}

Batch Dataset::test_batch(std::size_t first, std::size_t count) const {
  if (first > test_size() || count > test_size() - first) {
    throw std::invalid_argument(fmt::format("data '{}': {} test images from {} on asked for, there are {}",
                                            name(), count, first, test_size()));
  }
  Batch batch = empty_batch(count, image_shape().size());
  for (std::size_t index = first; index < first + count; ++index) {
    append_image(batch, contents_.test, index, image_shape().size());
  }
  return batch;
}

}  // namespace sim
