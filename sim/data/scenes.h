#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/data/dataset.h"

namespace sim {

struct ScenesOptions {
  std::size_t training_size = 1500;
  std::size_t test_size = 300;
  std::uint64_t seed = 0;  ///< of the painter, not of a training run
  float noise = 0.03f;     ///< standard deviation of every value of a pixel, 0 .. 1; white is 1
};

/// Colour images of 64 x 64 pixels with one to three shapes on a background that changes linearly; the
/// classes are 0, square, 1, disc, and 2, triangle, equally likely.
///
/// A shape is as wide as high, 14 % to 50 % of the side, and lies within the image. A triangle stands on its
/// base. Later shapes cover earlier ones, but at most 30 % of the smaller of two boxes is shared. In at least
/// one colour a shape differs by 0.3 or more from the background at its centre. Pixels at its rim mix in
/// sixteenths, then normal noise is added. Training and test images come from separate random streams. Same
/// options, same pixels, on every machine and any number of threads. Throws std::invalid_argument when an
/// option is not allowed.
SceneDataset draw_scenes(const ScenesOptions& options = {});

}  // namespace sim
