#include "sim/ops/sum.h"

#include "sim/ops/sum_of_elements.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  return with_real(is_binary64(x), [&](auto real) {
    return scalar_output(call, sum_of_elements<decltype(real)>(x, call.arithmetic.reductions));
  });
}

void backward(const OperationGradient& g) {
  spread_output_gradient(g, 1);
}

}  // namespace

constinit const Operation sum{.name = "sum",
                              .description = "sum of all elements",
                              .casts = CastClasses{.torch_autocast = AutocastClass::full_precision_output,
                                                   .apex_o1 = AutocastClass::full_precision},
                              .forward = forward,
                              .backward = backward,
                              .unit_multipliers = no_unit_multipliers};

}  // namespace sim
