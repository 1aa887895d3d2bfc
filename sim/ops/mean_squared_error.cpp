#include "sim/ops/mean_squared_error.h"

#include "sim/ops/loss.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return elementwise_loss(mean_squared_error, call, [](auto prediction, auto target) {
    return (prediction - target) * (prediction - target);
  });
}

void backward(const OperationGradient& g) {
  elementwise_loss_gradient(mean_squared_error, g, 0,
                            [](auto prediction, auto target) { return 2 * (prediction - target); });
  elementwise_loss_gradient(mean_squared_error, g, 1,
                            [](auto prediction, auto target) { return 2 * (target - prediction); });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  return evaluated_as_sum<ElementwiseLossOptions>(call, call.rule.mean_squared_error(call.inputs[0]->size()));
}

}  // namespace

constinit const Operation mean_squared_error{
    .name = "mean_squared_error",
    .description = "mean of (prediction - target)^2",
    .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                         .apex_o1 = AutocastClass::full_precision},
    .is_loss = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = unit_multipliers};

}  // namespace sim
