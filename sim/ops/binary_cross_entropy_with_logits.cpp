#include "sim/ops/binary_cross_entropy_with_logits.h"

#include <cmath>

#include "sim/ops/elementary.h"
#include "sim/ops/loss.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return elementwise_loss(binary_cross_entropy_with_logits, call, [](auto x, auto t) {
    using Real = decltype(x);
    const Real positive_part = x < 0 ? Real{0} : x;
    return positive_part - x * t + elementary::log1p(elementary::exp(-std::abs(x)));
  });
}

void backward(const OperationGradient& g) {
  elementwise_loss_gradient(binary_cross_entropy_with_logits, g, 0,
                            [](auto x, auto t) { return elementary::sigmoid(x) - t; });
  elementwise_loss_gradient(binary_cross_entropy_with_logits, g, 1, [](auto x, auto) { return -x; });
}

}  // namespace

constinit const Operation binary_cross_entropy_with_logits{
    .name = "binary_cross_entropy_with_logits",
    .description = "binary cross entropy of sigmoid(x), without forming it",
    .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                         .apex_o1 = AutocastClass::full_precision},
    .is_loss = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = no_unit_multipliers};

}  // namespace sim
