#pragma once
/// Gradients before and after unscaling are two types, and only unscale() makes one from the other:
/// forgetting it, or doing it twice, does not compile.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fp16/exponent_histogram.h"
#include "sim/loss_scaling/loss_scaler.h"
#include "sim/tape/clipping.h"
#include "sim/tape/tape.h"

namespace sim {

/// What backward gives for the loss times S, at every site of the tape, in the formats of the policy.
struct ScaledGradients {
  std::vector<GradientSite> sites;
  SiteGradients values;
};

/// Gradients of the loss itself, one tensor per parameter, in the policy's format for them.
struct Gradients {
  std::vector<Tensor> parameters;
};

/// The gradients of one parameter, its place among the parameters being its place among the weight sites.
bool is_weight(const GradientSite& site);

/// sum += next at every weight site, rounded once to the format of the gradient, as .grad accumulates over
/// the backward passes of micro-batches, and with them the counts of rounding, if both have any; other sites
/// keep what `sum` has. Both have the same scales.
void accumulate(std::span<const GradientSite> sites, SiteGradients& sum, const SiteGradients& next,
                int threads = 1);

/// How unscale() goes about it.
struct UnscaleOptions {
  /// What the gradients are divided by over what their backward multiplied the loss with: 1, but for a rule
  /// that divides by another S than it used.
  double divisor_ratio = 1;
  /// Products with 1/S are made in binary32, as frameworks make them, or in binary64 of such gradients, and then rounded to
  /// this format or, where that is wider, to the gradient's own.
  fp16::Format format = fp16::binary32;
  int threads = 1;
};

/// Parameter gradients times fl32(1 / scale): exact for a power-of-two scale, but where the result is
/// subnormal in the format.
Gradients unscale(const ScaledGradients& scaled, const UnscaleOptions& options = {});

/// What a loss scaler may know of a step, still scaled, but for the twin; if asked for, with the exponents of all
/// sites' values, which are counted into `exponents`.
GradientSummary summarise(const ScaledGradients& scaled, fp16::ExponentHistogram* exponents);

/// Limits on gradients; what is absent does not limit.
struct Clipping {
  std::optional<double> max_norm;   ///< clip_by_norm, and then
  std::optional<double> max_value;  ///< clip_by_value
};

struct ClippingResult {
  NormClipping norm = {};  ///< zero and one where the norm was not limited
  std::uint64_t clipped_values = 0;
};

/// Clips all tensors together, as clipping.h says; tensors of 16 bits are widened, and the results rounded
/// once back into them.
ClippingResult clip(Gradients& gradients, const Clipping& clipping);

/// Clips parameter gradients that still carry their scales, against limits that do not: a mistake, to look at
/// its effect.
ClippingResult clip(ScaledGradients& gradients, const Clipping& clipping);

/// True when an element is infinite or NaN.
bool has_nonfinite(const Tensor& tensor);

/// Adds the values of `tensor` to the histogram.
void add_exponents(fp16::ExponentHistogram& histogram, const Tensor& tensor);

}  // namespace sim
