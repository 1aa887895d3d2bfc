#pragma once
/// Images stored as bytes, as data sets of images and of scenes hold them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/data/dataset.h"

namespace sim {

/// The images of these indices as floats, byte / 255, one after the other.
std::vector<float> pixels_of(std::span<const std::uint8_t> pixels, ImageShape shape,
                             std::span<const std::uint32_t> indices);

/// Throws std::invalid_argument, naming data and set, unless there is at least one image, of at least one
/// pixel, and shape.size() pixels for each of `count` images, which `what` names: "labels".
void check_pixels(const std::string& where, std::size_t pixels, ImageShape shape, std::size_t count,
                  std::string_view what);

}  // namespace sim
