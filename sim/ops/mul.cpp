#include "sim/ops/mul.h"

#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<2>(call, [](auto a, auto b) { return a * b; });
}

void backward(const OperationGradient& g) {
  const auto product = [](auto other, auto dy) { return other * dy; };
  map_backward<1>(g, 0, {g.inputs[1]}, product);
  map_backward<1>(g, 1, {g.inputs[0]}, product);
}

}  // namespace

constinit const Operation mul{.name = "mul",
                              .description = "a * b, element by element",
                              .casts = CastClasses{.apex_o1 = AutocastClass::promote},
                              .forward = forward,
                              .backward = backward,
                              .unit_multipliers = no_unit_multipliers};

}  // namespace sim
