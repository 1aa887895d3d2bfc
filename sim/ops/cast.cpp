#include "sim/ops/cast.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  Tensor output(call.inputs[0]->shape(), call.options.get<CastOptions>().format);
  copy_rounded(call.into(output), *call.inputs[0], call.arithmetic.threads);
  return output;
}

void backward(const OperationGradient& g) {
  copy_rounded(g.input_gradients[0], g.output_gradient, g.arithmetic.threads);
}

}  // namespace

constinit const Operation cast{.name = "cast",
                               .description = "the same values rounded once to another format",
                               .casts = on_no_list,
                               .forward = forward,
                               .backward = backward,
                               .unit_multipliers = no_unit_multipliers};

}  // namespace sim
