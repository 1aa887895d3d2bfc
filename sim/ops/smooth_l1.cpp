#include <cmath>

#include "sim/ops/loss.h"

namespace sim {
namespace {

template <class Real>
Real slope(Real difference, Real beta) {
  const Real sign = difference > 0 ? Real{1} : difference < 0 ? Real{-1} : difference;
  return std::abs(difference) < beta ? difference / beta : sign;
}

/// options.beta: d^2 / (2 beta) where |d| = |prediction - target| < beta, else |d| - beta/2; with beta 0 it
/// is the absolute error.
Tensor forward(OperationCall& call) {
  const double beta = names::checked_option<double>(smooth_l1.name, "beta", call.options.beta, not_negative);
  return elementwise_loss(smooth_l1, call, [beta](auto prediction, auto target) {
    using Real = decltype(prediction);
    const Real edge = static_cast<Real>(beta), distance = std::abs(prediction - target);
    return distance < edge ? distance * distance / (2 * edge) : distance - edge / 2;
  });
}

void backward(const OperationGradient& g) {
  const double beta = g.options.beta;
  elementwise_loss_gradient(smooth_l1, g, 0, [beta](auto prediction, auto target) {
    return slope(prediction - target, static_cast<decltype(prediction)>(beta));
  });
  elementwise_loss_gradient(smooth_l1, g, 1, [beta](auto prediction, auto target) {
    return slope(target - prediction, static_cast<decltype(prediction)>(beta));
  });
}

}  // namespace

constinit const Operation smooth_l1{
    .name = "smooth_l1",
    .description = "mean of a square near 0 that turns into the absolute error",
    .casts = {.torch_autocast = AutocastClass::full_precision, .apex_o1 = AutocastClass::full_precision},
    .is_loss = true,
    .forward = forward,
    .backward = backward};

}  // namespace sim
