#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct ChannelsLastOptions {
  std::size_t row_length = 0;  ///< of a row of the output; 0 means the channels
};

/// Channels moved last: inputs x (N x C x H x W); output: the same elements in the order N, H, W, C, in rows
/// of row_length, which divides C: the anchors of a detector with so many numbers each.
extern const Operation channels_last;

}  // namespace sim
