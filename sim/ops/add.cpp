#include "sim/ops/add.h"

#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<2>(call, [](auto a, auto b) { return a + b; });
}

void backward(const OperationGradient& g) {
  for (std::size_t input = 0; input < 2; ++input) {
    map_backward<0>(g, input, {}, [](auto dy) { return dy; });
  }
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const bool is_sum_of_losses = call.inputs[0]->size() == 1;
  return is_sum_of_losses ? UnitMultipliers() : call.rule.add();
}

}  // namespace

constinit const Operation add{.name = "add",
                              .description = "a + b, element by element: a residual connection",
                              .casts = CastClasses{.apex_o1 = AutocastClass::promote},
                              .forward = forward,
                              .backward = backward,
                              .unit_multipliers = unit_multipliers};

}  // namespace sim
