#include "sim/data/pixels.h"

#include <fmt/format.h>

#include <stdexcept>

#include "fp16/config.h"

namespace sim {
namespace {

FP16_VECTOR_CLONES void write_values(std::span<const std::uint8_t> pixels, float* values) {
  for (std::size_t i = 0; i < pixels.size(); ++i) values[i] = static_cast<float>(pixels[i]) / 255.0f;
}

}  // namespace

std::vector<float> pixels_of(std::span<const std::uint8_t> pixels, ImageShape shape,
                             std::span<const std::uint32_t> indices) {
  std::vector<float> values(indices.size() * shape.size());
  for (std::size_t image = 0; image < indices.size(); ++image)
    write_values(pixels.subspan(indices[image] * shape.size(), shape.size()),
                 values.data() + image * shape.size());
  return values;
}

void check_pixels(const std::string& where, std::size_t pixels, ImageShape shape, std::size_t count,
                  std::string_view what) {
  const std::size_t needed = count * shape.size();
  if (needed == 0) {
    throw std::invalid_argument(where +
                                ": no images or images without pixels; at least one of each is needed");
  }
  if (pixels != needed) {
    throw std::invalid_argument(
        fmt::format("{}: {} pixels found, {} needed for {} {}", where, pixels, needed, count, what));
  }
}

}  // namespace sim
