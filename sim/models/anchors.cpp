#include "sim/models/anchors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "fp16/elementary.h"

namespace sim {
namespace {

BoxOffsets offsets_of(const Anchor& anchor, const Box& box) {
  const float width = box.x_max - box.x_min, height = box.y_max - box.y_min;
  return {((box.x_min + box.x_max) / 2 - anchor.x) / (0.1f * anchor.width),
          ((box.y_min + box.y_max) / 2 - anchor.y) / (0.1f * anchor.height),
          fp16::log(width / anchor.width) / 0.2f, fp16::log(height / anchor.height) / 0.2f};
}

}  // namespace

std::vector<Anchor> anchors_of_map(std::size_t cells_per_side, std::size_t per_cell, float size,
                                   float next_size) {
  const float larger = std::sqrt(size * next_size);
  std::vector<std::pair<float, float>> shapes{{size, size}, {larger, larger}};
  for (const float aspect : {2.0f, 3.0f}) {
    const float root = std::sqrt(aspect);
    shapes.emplace_back(size * root, size / root);
    shapes.emplace_back(size / root, size * root);
  }
  shapes.resize(std::min(per_cell, shapes.size()));
  std::vector<Anchor> anchors;
  const float cell = 1 / static_cast<float>(cells_per_side);
  for (std::size_t row = 0; row < cells_per_side; ++row) {
    for (std::size_t column = 0; column < cells_per_side; ++column) {
      for (const auto& [width, height] : shapes) {
        anchors.push_back({(static_cast<float>(column) + 0.5f) * cell,
                           (static_cast<float>(row) + 0.5f) * cell, width, height});
      }
    }
  }
  return anchors;
}

float overlap(const Anchor& a, const Box& b) {
  const float width = std::min(a.x + a.width / 2, b.x_max) - std::max(a.x - a.width / 2, b.x_min);
  const float height = std::min(a.y + a.height / 2, b.y_max) - std::max(a.y - a.height / 2, b.y_min);
  if (width <= 0 || height <= 0) return 0;
  const float common = width * height;
  return common / (a.width * a.height + (b.x_max - b.x_min) * (b.y_max - b.y_min) - common);
}

AnchorTargets match_anchors(std::span<const Anchor> anchors, std::span<const Box> objects) {
  constexpr std::size_t none = SIZE_MAX;
  std::vector<std::size_t> object_of(anchors.size(), none);
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    float best = 0.5f;
    for (std::size_t object = 0; object < objects.size(); ++object) {
      const float shared = overlap(anchors[i], objects[object]);
      if (shared < best || (shared == best && object_of[i] != none)) continue;
      best = shared;
      object_of[i] = object;
    }
  }
  std::vector<bool> taken(anchors.size(), false);
  for (std::size_t object = 0; object < objects.size(); ++object) {
    std::size_t best = none;
    for (std::size_t i = 0; i < anchors.size(); ++i) {
      if (taken[i]) continue;
      if (best == none || overlap(anchors[i], objects[object]) > overlap(anchors[best], objects[object]))
        best = i;
    }
    if (best == none) break;
    taken[best] = true;
    object_of[best] = object;
  }
  AnchorTargets targets{.labels = std::vector<std::int32_t>(anchors.size(), 0),
                        .offsets = std::vector<BoxOffsets>(anchors.size())};
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    if (object_of[i] == none) continue;
    targets.labels[i] = 1 + objects[object_of[i]].label;
    targets.offsets[i] = offsets_of(anchors[i], objects[object_of[i]]);
  }
  return targets;
}

void mine_hard_negatives(std::span<std::int32_t> labels, std::span<const float> background_losses,
                         std::size_t ratio) {
  std::vector<std::size_t> negatives;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == 0) negatives.push_back(i);
  }
  const std::size_t positives = labels.size() - negatives.size();
  // A NaN, which has no place in an order, is as hard as can be.
  const auto hardness = [&](std::size_t i) {
    return std::isnan(background_losses[i]) ? std::numeric_limits<float>::infinity() : background_losses[i];
  };
  std::ranges::stable_sort(negatives, std::greater{}, hardness);
  for (std::size_t rank = ratio * positives; rank < negatives.size(); ++rank) labels[negatives[rank]] = -1;
}

}  // namespace sim
