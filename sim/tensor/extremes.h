#pragma once

#include <span>

#include "sim/tensor/tensor.h"

namespace sim {

struct Extremes {
  bool found_nonfinite = false;
  /// Largest finite magnitude; of a binary64 tensor rounded to binary32, at most its largest finite value.
  float max_abs = 0;
};

Extremes extremes_of(const Tensor& tensor);

/// Infinity where there is one; NaNs have no magnitude, and of no numbers it is 0.
float largest_magnitude(std::span<const float> values);

/// The same of elements [offset, offset + count) of a tensor of at most 32 bits an element.
float largest_magnitude(const Tensor& tensor, std::size_t offset, std::size_t count);

}  // namespace sim
