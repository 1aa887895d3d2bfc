#include "sim/ops/log.h"

#include "sim/ops/elementary.h"
#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<1>(call, [](auto x) { return elementary::log(x); });
}

void backward(const OperationGradient& g) {
  map_backward<1>(g, 0, {g.inputs[0]}, [](auto x, auto dy) { return dy / x; });
}

}  // namespace

constinit const Operation log{.name = "log",
                              .description = "natural logarithm",
                              .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                                                   .apex_o1 = AutocastClass::full_precision},
                              .forward = forward,
                              .backward = backward,
                              .unit_multipliers = no_unit_multipliers};

}  // namespace sim
