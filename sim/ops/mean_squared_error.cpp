#include <vector>

#include "sim/ops/operation.h"

namespace sim {
namespace {

/// inputs: prediction and target (batch x features). Output: the mean of (prediction - target)^2 over batch x
/// features, a scalar; summed along each row, then over rows, in ascending order.
Tensor forward(OperationCall& call) {
  const Tensor &prediction = *call.inputs[0], &target = *call.inputs[1];
  const std::size_t batch = prediction.shape()[0], features = prediction.size() / batch;
  Tensor output({1}, call.output_format);
  with_real(is_binary64(prediction), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> p_buffer(features), t_buffer(features);
    Real sum = 0;
    for (std::size_t row = 0; row < batch; ++row) {
      const Real* p = read(prediction, row * features, features, p_buffer);
      const Real* t = read(target, row * features, features, t_buffer);
      Real row_sum = 0;
      for (std::size_t j = 0; j < features; ++j) row_sum += (p[j] - t[j]) * (p[j] - t[j]);
      sum += row_sum;
    }
    const Real mean = sum / static_cast<Real>(prediction.size());
    store({&output}, 0, std::span(&mean, 1));
  });
  return output;
}

/// (prediction - target) * (2 upstream / (batch * features)); for the target the negative of it.
void backward(const OperationGradient& g) {
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const Real factor =
        2 * static_cast<Real>(g.output_gradient.element(0)) / static_cast<Real>(g.inputs[0]->size());
    const auto difference = [factor](Real a, Real b) { return (a - b) * factor; };
    if (g.input_gradients[0].tensor) {
      map_elements<Real, 2>(g.input_gradients[0], {g.inputs[0], g.inputs[1]}, difference);
    }
    if (g.input_gradients[1].tensor) {
      map_elements<Real, 2>(g.input_gradients[1], {g.inputs[1], g.inputs[0]}, difference);
    }
  });
}

}  // namespace

constinit const Operation mean_squared_error{
    .name = "mean_squared_error",
    .description = "mean of (prediction - target)^2 over batch x features",
    .autocast = AutocastClass::full_precision,
    .is_layer = false,
    .forward = forward,
    .backward = backward};

}  // namespace sim
