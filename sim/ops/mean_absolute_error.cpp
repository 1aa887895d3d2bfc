#include "sim/ops/mean_absolute_error.h"

#include <cmath>

#include "sim/ops/loss.h"

namespace sim {
namespace {

/// -1, 0 or 1; a NaN stays one.
template <class Real>
Real sign_of(Real x) {
  return x > 0 ? Real{1} : x < 0 ? Real{-1} : x;
}

Tensor forward(OperationCall& call) {
  return elementwise_loss(mean_absolute_error, call,
                          [](auto prediction, auto target) { return std::abs(prediction - target); });
}

void backward(const OperationGradient& g) {
  elementwise_loss_gradient(mean_absolute_error, g, 0,
                            [](auto prediction, auto target) { return sign_of(prediction - target); });
  elementwise_loss_gradient(mean_absolute_error, g, 1,
                            [](auto prediction, auto target) { return sign_of(target - prediction); });
}

}  // namespace

constinit const Operation mean_absolute_error{
    .name = "mean_absolute_error",
    .description = "mean of |prediction - target|; its gradient at 0 is 0",
    .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                         .apex_o1 = AutocastClass::full_precision},
    .is_loss = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = no_unit_multipliers};

}  // namespace sim
