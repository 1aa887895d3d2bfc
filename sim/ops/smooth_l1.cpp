#include "sim/ops/smooth_l1.h"

#include <cmath>

#include "sim/ops/loss.h"

namespace sim {
namespace {

template <class Real>
Real slope(Real difference, Real beta) {
  const Real sign = difference > 0 ? Real{1} : difference < 0 ? Real{-1} : difference;
  return std::abs(difference) < beta ? difference / beta : sign;
}

Tensor forward(OperationCall& call) {
  const double beta = names::checked_option<double>(smooth_l1.name, "beta",
                                                    call.options.get<SmoothL1Options>().beta, not_negative);
  return elementwise_loss<SmoothL1Options>(smooth_l1, call, [beta](auto prediction, auto target) {
    using Real = decltype(prediction);
    const Real edge = static_cast<Real>(beta), distance = std::abs(prediction - target);
    return distance < edge ? distance * distance / (2 * edge) : distance - edge / 2;
  });
}

void backward(const OperationGradient& g) {
  const double beta = g.options.get<SmoothL1Options>().beta;
  elementwise_loss_gradient<SmoothL1Options>(smooth_l1, g, 0, [beta](auto prediction, auto target) {
    return slope(prediction - target, static_cast<decltype(prediction)>(beta));
  });
  elementwise_loss_gradient<SmoothL1Options>(smooth_l1, g, 1, [beta](auto prediction, auto target) {
    return slope(target - prediction, static_cast<decltype(prediction)>(beta));
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  return evaluated_as_sum<SmoothL1Options>(call, call.rule.smooth_l1(call.inputs[0]->size()));
}

}  // namespace

constinit const Operation smooth_l1{
    .name = "smooth_l1",
    .description = "mean of a square near 0 that turns into the absolute error",
    .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                         .apex_o1 = AutocastClass::full_precision},
    .is_loss = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = unit_multipliers};

}  // namespace sim
