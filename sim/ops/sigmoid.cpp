#include <cmath>

#include "fp16/elementary.h"
#include "sim/ops/operation.h"

namespace sim {
namespace {

float logistic(float x) {
  return fp16::sigmoid(x);
}
double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor output(x.shape(), call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    map_elements<Real, 1>({&output}, {&x}, [](Real v) { return logistic(v); });
  });
  return output;
}

void backward(const OperationGradient& g) {
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    map_elements<Real, 2>(g.input_gradients[0], {&g.output, &g.output_gradient},
                          [](Real y, Real dy) { return dy * (y * (1 - y)); });
  });
}

}  // namespace

constinit const Operation sigmoid{
    .name = "sigmoid",
    .description = "1 / (1 + exp(-x)); its gradient is at most a quarter of what comes in",
    .autocast = AutocastClass::input_type,
    .is_layer = false,
    .forward = forward,
    .backward = backward};

}  // namespace sim
