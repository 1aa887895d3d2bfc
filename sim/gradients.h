#pragma once
/// Gradients before and after unscaling are two types, and only unscale() makes one from the other:
/// forgetting it, or doing it twice, does not compile.

#include <vector>

#include "sim/loss_scaling/loss_scaler.h"
#include "sim/statistics/exponent_histogram.h"
#include "sim/tape.h"

namespace sim {

/// What backward gives for the loss times `scale`, at every site of the tape, in the formats of the policy.
struct ScaledGradients {
  const std::vector<GradientSite>& sites;
  SiteGradients values;
  float scale;
};

/// Gradients of the loss itself, one binary32 tensor per parameter.
struct Gradients {
  std::vector<Tensor> parameters;
};

/// Parameter gradients times fl32(1 / scale): exact for a power-of-two scale, but where the result is
/// subnormal in binary32.
Gradients unscale(const ScaledGradients& scaled);

/// What a loss scaler may know of a step, still scaled: whether a parameter gradient is infinite or NaN (as
/// torch.amp.GradScaler checks) and, if asked for, the exponents of all sites' values, which are counted into
/// `exponents`.
GradientSummary summarise(const ScaledGradients& scaled, ExponentHistogram* exponents);

/// Adds the values of `tensor` to the histogram.
void add_exponents(ExponentHistogram& histogram, const Tensor& tensor);

}  // namespace sim
