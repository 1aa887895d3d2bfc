#include "sim/ops/relu.h"

#include "sim/ops/elementwise.h"

namespace sim {
namespace {

// A NaN passes: only values below zero become zero.
Tensor forward(OperationCall& call) {
  return map_forward<1>(call, [](auto x) { return x < 0 ? decltype(x){0} : x; });
}

void backward(const OperationGradient& g) {
  map_backward<1>(g, 0, {g.inputs[0]}, [](auto x, auto dy) { return x <= 0 ? decltype(x){0} : dy; });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  return call.rule.relu();
}

}  // namespace

constinit const Operation relu{.name = "relu",
                               .description = "max(x, 0); the gradient at 0 is 0",
                               .casts = on_no_list,
                               .forward = forward,
                               .backward = backward,
                               .unit_multipliers = unit_multipliers};

}  // namespace sim
