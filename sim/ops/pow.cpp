#include "sim/ops/pow.h"

#include "sim/ops/elementary.h"
#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<1>(call, [exponent = call.options.get<PowOptions>().exponent](auto x) {
    return elementary::pow(x, static_cast<decltype(x)>(exponent));
  });
}

void backward(const OperationGradient& g) {
  map_backward<1>(g, 0, {g.inputs[0]}, [exponent = g.options.get<PowOptions>().exponent](auto x, auto dy) {
    using Real = decltype(x);
    if (exponent == 0) return Real{0};  // not 0 times infinity at x = 0
    return dy * (static_cast<Real>(exponent) * elementary::pow(x, static_cast<Real>(exponent - 1)));
  });
}

}  // namespace

constinit const Operation pow{.name = "pow",
                              .description = "x to a constant exponent",
                              .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                                                   .apex_o1 = AutocastClass::full_precision},
                              .forward = forward,
                              .backward = backward,
                              .unit_multipliers = no_unit_multipliers};

}  // namespace sim
