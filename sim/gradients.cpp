#include "sim/gradients.h"

#include <bit>
#include <cstdint>

#include "fp16/bits.h"
#include "sim/ops/operation.h"

namespace sim {
namespace {

/// On bit patterns: magnitudes of floats are ordered as their bits are, and integers vectorise where
/// NaN-aware float comparisons do not.
FP16_VECTOR_CLONES bool has_nonfinite(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float value : values) {
    const auto magnitude =
        static_cast<std::int32_t>(fp16::magnitude<fp16::binary32>(std::bit_cast<std::uint32_t>(value)));
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest >= static_cast<std::int32_t>(fp16::infinity_bits<fp16::binary32>);
}

bool has_nonfinite(const Tensor& tensor) {
  bool found = false;
  for_each_piece(tensor, [&](std::span<const float> values) { found |= has_nonfinite(values); });
  return found;
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
  GradientSummary summary{.found_nonfinite = false, .exponents = exponents};
  for (std::size_t site = 0; site < scaled.sites.size(); ++site) {
    const Tensor& values = scaled.values.gradients[site];
    if (scaled.sites[site].kind == GradientSite::Kind::weight)
      summary.found_nonfinite |= has_nonfinite(values);
    if (exponents) add_exponents(*exponents, values);
  }
  return summary;
}

void add_exponents(ExponentHistogram& histogram, const Tensor& tensor) {
  for_each_piece(tensor, [&](std::span<const float> values) { histogram.add(values); });
}

}  // namespace sim
