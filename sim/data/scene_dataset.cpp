#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "sim/data/dataset.h"
#include "sim/data/pixels.h"

namespace sim {
namespace {

bool is_extent(float low, float high) {
  return 0.0f <= low && low < high && high <= 1.0f;  // false for NaN
}

void check_box(const std::string& where, const Box& box, int classes) {
  if (!is_extent(box.x_min, box.x_max) || !is_extent(box.y_min, box.y_max)) {
    throw std::invalid_argument(fmt::format("{}: x {} .. {}, y {} .. {} found; 0 <= min < max <= 1 is needed",
                                            where, box.x_min, box.x_max, box.y_min, box.y_max));
  }
  if (box.label < 0 || box.label >= classes) {
    throw std::invalid_argument(
        fmt::format("{}: label {} found, allowed are 0 .. {}", where, box.label, classes - 1));
  }
}

void check(const SceneDataset::Contents& contents, std::string_view set, const Scenes& scenes) {
  const std::string where = fmt::format("data '{}', {} set", contents.name, set);
  check_pixels(where, scenes.pixels.size(), contents.image_shape, scenes.boxes.size(), "scenes");
  for (std::size_t image = 0; image < scenes.boxes.size(); ++image) {
    for (std::size_t box = 0; box < scenes.boxes[image].size(); ++box) {
      check_box(fmt::format("{}, image {}, box {}", where, image, box), scenes.boxes[image][box],
                contents.classes);
    }
  }
}

}  // namespace

SceneDataset::SceneDataset(Contents contents)
    : Dataset(contents.name), image_shape_(contents.image_shape), classes_(contents.classes) {
  check(contents, "training", contents.training);
  check(contents, "test", contents.test);
  training_ = std::move(contents.training);
  test_ = std::move(contents.test);
}

Batch SceneDataset::make_batch(Part part, std::span<const std::uint32_t> indices) const {
  const Scenes& scenes = part == Part::training ? training_ : test_;
  Batch batch{.size = indices.size(), .inputs = pixels_of(scenes.pixels, image_shape_, indices)};
  batch.boxes.reserve(indices.size());
  for (const std::uint32_t index : indices) batch.boxes.push_back(scenes.boxes[index]);
  return batch;
}

}  // namespace sim
