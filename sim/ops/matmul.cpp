#include "sim/ops/matmul.h"

#include "sim/ops/matrix_product.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor &a = *call.inputs[0], &b = *call.inputs[1];
  const std::size_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  Tensor output({m, n}, call.output_format);
  matrix_product(call.into(output), a.matrix(m, k), b.matrix(k, n), call.arithmetic);
  return output;
}

void backward(const OperationGradient& g) {
  const Tensor &a = *g.inputs[0], &b = *g.inputs[1];
  const std::size_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  const fp16::MatrixOperand dy = g.output_gradient.matrix(m, n);
  if (g.input_gradients[0].tensor) {
    matrix_product(g.input_gradients[0], dy, b.matrix(k, n).transposed(), g.arithmetic);
  }
  if (g.input_gradients[1].tensor) {
    matrix_product(g.input_gradients[1], a.matrix(m, k).transposed(), dy, g.arithmetic);
  }
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const Shape &a = call.inputs[0]->shape(), &b = call.inputs[1]->shape();
  return call.rule.matmul(a[0], a.back(), b[1]);
}

}  // namespace

constinit const Operation matmul{.name = "matmul",
                                 .description = "a (m x k) times b (k x n)",
                                 .casts = CastClasses{.torch_autocast = AutocastClass::lower_precision,
                                                      .apex_o1 = AutocastClass::lower_precision},
                                 .is_layer = true,
                                 .forward = forward,
                                 .backward = backward,
                                 .unit_multipliers = unit_multipliers};

}  // namespace sim
