#include "sim/data/pixels.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace sim {
namespace {

constexpr std::array<float, 256> pixel_values = [] {
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 255.0f;
  return values;
}();

}  // namespace

std::vector<float> pixels_of(std::span<const std::uint8_t> pixels, ImageShape shape,
                             std::span<const std::uint32_t> indices) {
  std::vector<float> values;
  values.reserve(indices.size() * shape.size());
  for (const std::uint32_t index : indices) {
    for (std::uint8_t pixel : pixels.subspan(index * shape.size(), shape.size()))
      values.push_back(pixel_values[pixel]);
  }
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
