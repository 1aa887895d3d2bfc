#include "sim/ops/mean.h"

#include "sim/ops/sum_of_elements.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  return with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    return scalar_output(call,
                         sum_of_elements<Real>(x, call.arithmetic.reductions) / static_cast<Real>(x.size()));
  });
}

void backward(const OperationGradient& g) {
  spread_output_gradient(g, g.inputs[0]->size());
}

}  // namespace

/// On no list of either: Apex patches it to FP32 only for torch below 1.1.
constinit const Operation mean{.name = "mean",
                               .description = "mean of all elements",
                               .casts = on_no_list,
                               .forward = forward,
                               .backward = backward,
                               .unit_multipliers = no_unit_multipliers};

}  // namespace sim
