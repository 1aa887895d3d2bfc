#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/data/dataset.h"
#include "sim/data/pixels.h"

namespace sim {
namespace {

void check(const ImageDataset::Contents& contents, std::string_view set, const LabelledImages& images) {
  const std::string where = fmt::format("data '{}', {} set", contents.name, set);
  check_pixels(where, images.pixels.size(), contents.image_shape, images.labels.size(), "labels");
  if (const int largest = *std::ranges::max_element(images.labels); largest >= contents.classes) {
    throw std::invalid_argument(
        fmt::format("{}: label {} found, allowed are 0 .. {}", where, largest, contents.classes - 1));
  }
}

}  // namespace

ImageDataset::ImageDataset(Contents contents)
    : Dataset(contents.name), image_shape_(contents.image_shape), classes_(contents.classes) {
  check(contents, "training", contents.training);
  check(contents, "test", contents.test);
  training_ = std::move(contents.training);
  test_ = std::move(contents.test);
}

Batch ImageDataset::make_batch(Part part, std::span<const std::uint32_t> indices) const {
  const LabelledImages& images = part == Part::training ? training_ : test_;
  Batch batch{.size = indices.size(), .inputs = pixels_of(images.pixels, image_shape_, indices)};
  batch.labels.reserve(indices.size());
  for (const std::uint32_t index : indices) batch.labels.push_back(images.labels[index]);
  return batch;
}

}  // namespace sim
