#include "sim/ops/sigmoid.h"

#include "sim/ops/elementary.h"
#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<1>(call, [](auto x) { return elementary::sigmoid(x); });
}

void backward(const OperationGradient& g) {
  map_backward<1>(g, 0, {&g.output}, [](auto y, auto dy) { return dy * (y * (1 - y)); });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  return call.rule.sigmoid();
}

}  // namespace

constinit const Operation sigmoid{.name = "sigmoid",
                                  .description = "1 / (1 + exp(-x))",
                                  .casts = on_no_list,
                                  .forward = forward,
                                  .backward = backward,
                                  .unit_multipliers = unit_multipliers};

}  // namespace sim
