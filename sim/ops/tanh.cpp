#include "sim/ops/tanh.h"

#include "sim/ops/elementary.h"
#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<1>(call, [](auto x) { return elementary::tanh(x); });
}

void backward(const OperationGradient& g) {
  map_backward<1>(g, 0, {&g.output}, [](auto y, auto dy) { return dy * (1 - y * y); });
}

}  // namespace

constinit const Operation tanh{.name = "tanh",
                               .description = "hyperbolic tangent",
                               .casts = on_no_list,
                               .forward = forward,
                               .backward = backward,
                               .unit_multipliers = no_unit_multipliers};

}  // namespace sim
