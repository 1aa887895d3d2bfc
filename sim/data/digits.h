#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/data/dataset.h"

namespace sim {

struct DigitsOptions {
  std::size_t training_size = 8000;
  std::size_t test_size = 2000;
  std::uint64_t seed = 0;  ///< of the pen, not of a training run
};

/// Images of handwritten-looking digits, 28 x 28, ten classes, equally often: image i shows the digit i
/// mod 10.
///
/// Each image is one of several writing styles of its digit, given by control points of its strokes. These
/// are jittered, distorted as a whole (rotation, shear, scale, shift) and drawn as smooth curves with a round
/// pen of random width; then a little noise is added. Training and test images come from separate random
/// streams. Same options, same pixels, on every machine.
ImageDataset draw_digits(const DigitsOptions& options = {});

}  // namespace sim
