#include "sim/gradients.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "fp16/bits.h"
#include "sim/ops/elementwise.h"

namespace sim {
namespace {

/// Magnitudes of floats as their bits, which are ordered alike; integers vectorise where NaN-aware float
/// comparisons do not.
struct Magnitudes {
  std::int32_t largest = 0;
  std::int32_t largest_finite = 0;
};

constexpr auto infinite = static_cast<std::int32_t>(fp16::infinity_bits<fp16::binary32>);

FP16_VECTOR_CLONES Magnitudes magnitudes_of(std::span<const float> values) {
  Magnitudes result;
  for (const float value : values) {
    const auto magnitude =
        static_cast<std::int32_t>(fp16::magnitude<fp16::binary32>(std::bit_cast<std::uint32_t>(value)));
    const std::int32_t finite = magnitude < infinite ? magnitude : 0;
    result.largest = magnitude > result.largest ? magnitude : result.largest;
    result.largest_finite = finite > result.largest_finite ? finite : result.largest_finite;
  }
  return result;
}

struct Extremes {
  bool found_nonfinite = false;
  float max_abs = 0;  ///< of what is finite
};

/// Of a binary64 tensor the largest magnitude is rounded to binary32, at most to the largest finite value.
Extremes extremes_of_doubles(std::span<const double> values) {
  constexpr float largest = std::numeric_limits<float>::max();
  Extremes extremes;
  for (const double value : values) {
    const bool finite = std::isfinite(value);
    extremes.found_nonfinite |= !finite;
    if (!finite) continue;
    const double magnitude = std::min<double>(std::fabs(value), largest);
    extremes.max_abs = std::max(extremes.max_abs, static_cast<float>(magnitude));
  }
  return extremes;
}

Extremes extremes_of(const Tensor& tensor) {
  if (is_binary64(tensor)) return extremes_of_doubles(tensor.elements<double>());
  Magnitudes all;
  for_each_piece(tensor, [&](std::span<const float> values) {
    const Magnitudes piece = magnitudes_of(values);
    all.largest = std::max(all.largest, piece.largest);
    all.largest_finite = std::max(all.largest_finite, piece.largest_finite);
  });
  return {.found_nonfinite = all.largest >= infinite, .max_abs = std::bit_cast<float>(all.largest_finite)};
}

template <class Real>
ClippingResult clip_in(std::span<Tensor> gradients, const Clipping& clipping, fp16::Format format) {
  std::vector<Tensor> widened(gradients.size());
  std::vector<std::span<Real>> values;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].format() != format) {
      widened[i] = Tensor(gradients[i].shape(), format);
      copy_rounded({&widened[i]}, gradients[i]);
    }
    values.push_back((widened[i].empty() ? gradients[i] : widened[i]).elements<Real>());
  }
  ClippingResult result;
  if (clipping.max_norm) result.norm = clip_by_norm(values, *clipping.max_norm);
  if (clipping.max_value) result.clipped_values = clip_by_value(values, *clipping.max_value);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!widened[i].empty()) copy_rounded({&gradients[i]}, widened[i]);
  }
  return result;
}

}  // namespace

ClippingResult clip(std::span<Tensor> gradients, const Clipping& clipping) {
  if (!clipping.max_norm && !clipping.max_value) return {};
  return std::ranges::any_of(gradients, is_binary64) ? clip_in<double>(gradients, clipping, fp16::binary64)
                                                     : clip_in<float>(gradients, clipping, fp16::binary32);
}

bool is_weight(const GradientSite& site) {
  return site.kind == GradientSite::Kind::weight;
}

bool has_nonfinite(const Tensor& tensor) {
  return first_nonfinite(tensor).has_value();
}

void accumulate(ScaledGradients& sum, const ScaledGradients& next, int threads) {
  for (std::size_t site = 0; site < sum.sites.size(); ++site) {
    if (!is_weight(sum.sites[site])) continue;
    add_to({&sum.values.gradients[site]}, next.values.gradients[site], threads);
  }
}

Gradients unscale(const ScaledGradients& scaled, const UnscaleOptions& options) {
  Gradients gradients;
  for (std::size_t site = 0; site < scaled.sites.size(); ++site) {
    if (!is_weight(scaled.sites[site])) continue;
    const auto inverse = static_cast<float>(1.0 / (scaled.values.scales[site] * options.divisor_ratio));
    const Tensor& values = scaled.values.gradients[site];
    const bool stays = fp16::contains(values.format(), options.format);
    Tensor& unscaled =
        gradients.parameters.emplace_back(values.shape(), stays ? values.format() : options.format);
    with_real(is_binary64(values), [&](auto real) {
      using Real = decltype(real);
      map_elements<Real, 1>(
          {&unscaled}, {&values}, [inverse](Real g) { return g * inverse; }, options.threads);
    });
  }
  return gradients;
}

GradientSummary summarise(const ScaledGradients& scaled, ExponentHistogram* exponents) {
  GradientSummary summary{.exponents = exponents};
  for (std::size_t site = 0; site < scaled.sites.size(); ++site) {
    const Tensor& values = scaled.values.gradients[site];
    if (is_weight(scaled.sites[site])) {
      const Extremes extremes = extremes_of(values);
      summary.found_nonfinite |= extremes.found_nonfinite;
      summary.max_abs = std::max(summary.max_abs, extremes.max_abs);
    }
    if (exponents) add_exponents(*exponents, values);
  }
  for (const fp16::RoundingCounts& counts : scaled.values.rounding) summary.rounding += counts;
  return summary;
}

void add_exponents(ExponentHistogram& histogram, const Tensor& tensor) {
  if (tensor.format() == fp16::binary16) {
    histogram.add(tensor.elements<std::uint16_t>());
  } else if (tensor.format() == fp16::binary32) {
    histogram.add(tensor.elements<float>());
  } else if (is_binary64(tensor)) {
    histogram.add(tensor.elements<double>());
  } else {
    for_each_piece(tensor, [&](std::span<const float> values) { histogram.add(values); });
  }
}

}  // namespace sim
