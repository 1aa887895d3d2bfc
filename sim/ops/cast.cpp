#include "sim/ops/cast.h"

namespace sim {
namespace {

void copy(const RoundedOutput& out, const Tensor& in, int threads) {
  with_real(is_binary64(in), [&](auto real) {
    map_elements<decltype(real), 1>(
        out, {&in}, [](auto x) { return x; }, threads);
  });
}

Tensor forward(OperationCall& call) {
  Tensor output(call.inputs[0]->shape(), call.options.get<CastOptions>().format);
  copy(call.into(output), *call.inputs[0], call.arithmetic.threads);
  return output;
}

void backward(const OperationGradient& g) {
  copy(g.input_gradients[0], g.output_gradient, g.arithmetic.threads);
}

}  // namespace

constinit const Operation cast{.name = "cast",
                               .description = "the same values rounded once to another format",
                               .casts = on_no_list,
                               .forward = forward,
                               .backward = backward,
                               .unit_multipliers = no_unit_multipliers};

}  // namespace sim
