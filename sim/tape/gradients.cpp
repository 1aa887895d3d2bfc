#include "sim/tape/gradients.h"

#include <algorithm>

#include "sim/ops/elementwise.h"
#include "sim/tensor/extremes.h"

namespace sim {
namespace {

template <class Real>
ClippingResult clip_in(std::span<Tensor* const> gradients, const Clipping& clipping, fp16::Format format) {
  std::vector<Tensor> widened(gradients.size());
  std::vector<std::span<Real>> values;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i]->format() != format) {
      widened[i] = Tensor(gradients[i]->shape(), format);
      copy_rounded({&widened[i]}, *gradients[i]);
    }
    values.push_back((widened[i].empty() ? *gradients[i] : widened[i]).elements<Real>());
  }
  ClippingResult result;
  if (clipping.max_norm) result.norm = clip_by_norm(values, *clipping.max_norm);
  if (clipping.max_value) result.clipped_values = clip_by_value(values, *clipping.max_value);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!widened[i].empty()) copy_rounded({gradients[i]}, widened[i]);
  }
  return result;
}

ClippingResult clip_all(std::span<Tensor* const> gradients, const Clipping& clipping) {
  if (!clipping.max_norm && !clipping.max_value) return {};
  const bool binary64 =
      std::ranges::any_of(gradients, [](const Tensor* gradient) { return is_binary64(*gradient); });
  return binary64 ? clip_in<double>(gradients, clipping, fp16::binary64)
                  : clip_in<float>(gradients, clipping, fp16::binary32);
}

}  // namespace

ClippingResult clip(Gradients& gradients, const Clipping& clipping) {
  std::vector<Tensor*> parameters;
  for (Tensor& gradient : gradients.parameters) parameters.push_back(&gradient);
  return clip_all(parameters, clipping);
}

ClippingResult clip(ScaledGradients& gradients, const Clipping& clipping) {
  std::vector<Tensor*> parameters;
  for (std::size_t site = 0; site < gradients.sites.size(); ++site) {
    if (is_weight(gradients.sites[site])) parameters.push_back(&gradients.values.gradients[site]);
  }
  return clip_all(parameters, clipping);
}

bool is_weight(const GradientSite& site) {
  return site.kind == GradientSite::Kind::weight;
}

bool has_nonfinite(const Tensor& tensor) {
  return first_nonfinite(tensor).has_value();
}

void accumulate(std::span<const GradientSite> sites, SiteGradients& sum, const SiteGradients& next,
                int threads) {
  const bool counted = !sum.rounding.empty() && !next.rounding.empty();
  for (std::size_t site = 0; site < sites.size(); ++site) {
    if (!is_weight(sites[site])) continue;
    fp16::RoundingCounts* counts = counted ? &sum.rounding[site] : nullptr;
    add_to({&sum.gradients[site], counts}, next.gradients[site], threads);
    if (counts) *counts += next.rounding[site];
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

GradientSummary summarise(const ScaledGradients& scaled, fp16::ExponentHistogram* exponents) {
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
  return summary;
}

void add_exponents(fp16::ExponentHistogram& histogram, const Tensor& tensor) {
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
