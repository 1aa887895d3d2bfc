#include "sim/ops/binary_cross_entropy.h"

#include "sim/ops/elementary.h"
#include "sim/ops/loss.h"

namespace sim {
namespace {

/// torch's bound on logarithms, so that no sure and wrong probability has an infinite loss. NaN passes.
template <class Real>
Real bounded(Real logarithm) {
  return logarithm < -100 ? Real{-100} : logarithm;
}

Tensor forward(OperationCall& call) {
  return elementwise_loss(binary_cross_entropy, call, [](auto p, auto t) {
    return (t - 1) * bounded(elementary::log1p(-p)) - t * bounded(elementary::log(p));
  });
}

/// (p - t) / max(p (1 - p), 1e-12), as torch has it.
void backward(const OperationGradient& g) {
  elementwise_loss_gradient(binary_cross_entropy, g, 0, [](auto p, auto t) {
    using Real = decltype(p);
    const Real smallest = static_cast<Real>(1e-12), variance = p * (1 - p);
    return (p - t) / (variance < smallest ? smallest : variance);
  });
  elementwise_loss_gradient(binary_cross_entropy, g, 1, [](auto p, auto) {
    return bounded(elementary::log1p(-p)) - bounded(elementary::log(p));
  });
}

}  // namespace

constinit const Operation binary_cross_entropy{
    .name = "binary_cross_entropy",
    .description = "mean of -(t log p + (1 - t) log(1 - p)) for probabilities p",
    .casts = CastClasses{.torch_autocast = AutocastClass::banned, .apex_o1 = AutocastClass::banned},
    .is_loss = true,
    .replacement = "binary_cross_entropy_with_logits",
    .forward = forward,
    .backward = backward,
    .unit_multipliers = no_unit_multipliers};

}  // namespace sim
