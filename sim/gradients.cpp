#include "sim/gradients.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "fp16/bits.h"
#include "sim/ops/operation.h"

namespace sim {
namespace {

struct Extremes {
  float largest_finite = 0;
  bool nonfinite = false;
};

/// On bit patterns: magnitudes of floats are ordered as their bits are, and integers vectorise where
/// NaN-aware float comparisons do not.
FP16_VECTOR_CLONES Extremes extremes_of(std::span<const float> values) {
  constexpr auto infinity = static_cast<std::int32_t>(fp16::infinity_bits<fp16::binary32>);
  std::int32_t largest = 0, largest_any = 0;
  for (const float value : values) {
    const std::int32_t magnitude =
        static_cast<std::int32_t>(fp16::magnitude<fp16::binary32>(std::bit_cast<std::uint32_t>(value)));
    const std::int32_t finite = magnitude < infinity ? magnitude : 0;
    largest = finite > largest ? finite : largest;
    largest_any = magnitude > largest_any ? magnitude : largest_any;
  }
  return {.largest_finite = std::bit_cast<float>(largest), .nonfinite = largest_any >= infinity};
}

Extremes extremes_of(const Tensor& tensor) {
  Extremes all;
  for_each_piece(tensor, [&](std::span<const float> values) {
    const Extremes piece = extremes_of(values);
    all.largest_finite = std::max(all.largest_finite, piece.largest_finite);
    all.nonfinite |= piece.nonfinite;
  });
  return all;
}

}  // namespace

Gradients unscale(const ScaledGradients& scaled) {
  const float inverse = static_cast<float>(1.0 / static_cast<double>(scaled.scale));
  Gradients gradients;
  for (std::size_t site = 0; site < scaled.sites.size(); ++site) {
    if (scaled.sites[site].kind != GradientSite::Kind::weight) continue;
    const Tensor& values = scaled.values.gradients[site];
    Tensor& unscaled = gradients.parameters.emplace_back(values.shape(), fp16::binary32);
    map_elements<float, 1>({&unscaled}, {&values}, [inverse](float g) { return g * inverse; });
  }
  return gradients;
}

GradientSummary summarise(const ScaledGradients& scaled, ExponentHistogram* exponents) {
  GradientSummary summary{.found_nonfinite = false, .max_abs = 0, .exponents = exponents};
  for (std::size_t site = 0; site < scaled.sites.size(); ++site) {
    const Tensor& values = scaled.values.gradients[site];
    const Extremes extremes = extremes_of(values);
    summary.max_abs = std::max(summary.max_abs, extremes.largest_finite);
    if (scaled.sites[site].kind == GradientSite::Kind::weight) summary.found_nonfinite |= extremes.nonfinite;
    if (exponents) add_exponents(*exponents, values);
  }
  return summary;
}

void add_exponents(ExponentHistogram& histogram, const Tensor& tensor) {
  for_each_piece(tensor, [&](std::span<const float> values) { histogram.add(values); });
}

}  // namespace sim
