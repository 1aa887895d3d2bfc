#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct Conv2dOptions {
  std::size_t stride = 1;
  std::size_t padding = 0;  ///< zeros on every side
};

/// A convolution: inputs x (batch x in_channels x height x width), w (out_channels x in_channels x kernel x
/// kernel) and, if the layer has one, b (out_channels). Output: batch x out_channels x out_height x
/// out_width; one chain over the patch of each output pixel, the bias added to it before the one rounding.
extern const Operation conv2d;

}  // namespace sim
