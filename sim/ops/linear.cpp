#include "sim/ops/matrix_product.h"
#include "sim/ops/operation.h"

namespace sim {
namespace {

struct Sizes {
  std::size_t batch, in_features, out_features;
};

Sizes sizes_of(std::span<const Tensor* const> inputs) {
  const Shape& weights = inputs[1]->shape();
  return {.batch = inputs[0]->size() / weights[1], .in_features = weights[1], .out_features = weights[0]};
}

/// inputs: x (batch x in_features), w (out_features x in_features), b (out_features);
/// output: x w^T + b (batch x out_features), the bias added to the finished chain before the one rounding.
Tensor forward(OperationCall& call) {
  const auto [batch, in, out] = sizes_of(call.inputs);
  Tensor output({batch, out}, call.output_format);
  matrix_product({&output}, call.inputs[0]->matrix(batch, in), call.inputs[1]->matrix(out, in).transposed(),
                 call.accumulation, call.inputs[2]);
  return output;
}

void backward(const OperationGradient& g) {
  const auto [batch, in, out] = sizes_of(g.inputs);
  const fp16::MatrixOperand dy = g.output_gradient.matrix(batch, out);
  if (g.input_gradients[0].tensor) {
    matrix_product(g.input_gradients[0], dy, g.inputs[1]->matrix(out, in), g.accumulation);
  }
  if (g.input_gradients[1].tensor) {
    matrix_product(g.input_gradients[1], dy.transposed(), g.inputs[0]->matrix(batch, in), g.accumulation);
  }
  if (g.input_gradients[2].tensor) {
    sum_over_rows(g.input_gradients[2], g.output_gradient, batch, out, g.accumulation);
  }
}

}  // namespace

constinit const Operation linear{.name = "linear",
                                 .description = "x w^T + b, rounded once",
                                 .autocast = AutocastClass::lower_precision,
                                 .is_layer = true,
                                 .forward = forward,
                                 .backward = backward};

}  // namespace sim
