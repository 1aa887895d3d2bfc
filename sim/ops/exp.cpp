#include "sim/ops/exp.h"

#include "sim/ops/elementary.h"
#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<1>(call, [](auto x) { return elementary::exp(x); });
}

void backward(const OperationGradient& g) {
  map_backward<1>(g, 0, {&g.output}, [](auto y, auto dy) { return dy * y; });
}

}  // namespace

constinit const Operation exp{.name = "exp",
                              .description = "e to the x",
                              .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                                                   .apex_o1 = AutocastClass::full_precision},
                              .forward = forward,
                              .backward = backward,
                              .unit_multipliers = no_unit_multipliers};

}  // namespace sim
