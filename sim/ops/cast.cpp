#include "sim/ops/operation.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  Tensor output(call.inputs[0]->shape(), call.options.format);
  copy_rounded({&output}, *call.inputs[0]);
  return output;
}

void backward(const OperationGradient& g) {
  copy_rounded(g.input_gradients[0], g.output_gradient);
}

}  // namespace

constinit const Operation cast{.name = "cast",
                               .description = "the same values rounded once to another format",
                               .autocast = AutocastClass::input_type,
                               .is_layer = false,
                               .forward = forward,
                               .backward = backward};

}  // namespace sim
