#pragma once
/// The fixed boxes that a detector refines, and which of them answer for which object (Liu et al., "SSD:
/// Single Shot MultiBox Detector", ECCV 2016, section 2.2).

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/data/dataset.h"

namespace sim {

/// A box by its centre and size, in units of the image's side.
struct Anchor {
  float x, y, width, height;
};

/// How a box differs from an anchor, as the network is to say it: offsets of the centre over the anchor's
/// size and 0.1, logarithms of the sizes' ratios over 0.2.
using BoxOffsets = std::array<float, 4>;

/// What each anchor of one image is to predict.
struct AnchorTargets {
  std::vector<std::int32_t> labels;  ///< 0 for background, else 1 + the object's class
  std::vector<BoxOffsets> offsets;   ///< of the object; zeros for background
};

/// `per_cell` anchors for each cell of a square map, row by row: squares of `size` and of the geometric mean
/// of `size` and `next_size`, then boxes of `size` squared area and aspects 2, 1/2, 3, 1/3.
std::vector<Anchor> anchors_of_map(std::size_t cells_per_side, std::size_t per_cell, float size,
                                   float next_size);

/// Intersection over union.
float overlap(const Anchor& anchor, const Box& box);

/// An anchor answers for the object it overlaps most, if by at least one half; and each object has at least
/// the anchor that overlaps it most (of those not yet taken by an earlier object).
AnchorTargets match_anchors(std::span<const Anchor> anchors, std::span<const Box> objects);

/// Keeps for every object's anchor the `ratio` background anchors whose loss is largest, first come first at
/// equal losses; the labels of the others become -1, left out of the loss. `background_losses` are those of
/// calling an anchor background; NaN is the largest.
void mine_hard_negatives(std::span<std::int32_t> labels, std::span<const float> background_losses,
                         std::size_t ratio);

}  // namespace sim
