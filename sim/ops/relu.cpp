#include "sim/ops/operation.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor output(x.shape(), call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    // A NaN passes: only values below zero become zero.
    map_elements<Real, 1>({&output}, {&x}, [](Real v) { return v < 0 ? Real{0} : v; });
  });
  return output;
}

void backward(const OperationGradient& g) {
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    map_elements<Real, 2>(g.input_gradients[0], {g.inputs[0], &g.output_gradient},
                          [](Real x, Real dy) { return x <= 0 ? Real{0} : dy; });
  });
}

}  // namespace

constinit const Operation relu{.name = "relu",
                               .description = "max(x, 0); the gradient at 0 is 0",
                               .autocast = AutocastClass::input_type,
                               .is_layer = false,
                               .forward = forward,
                               .backward = backward};

}  // namespace sim
