#include "sim/ops/gelu.h"

#include "sim/ops/elementary.h"
#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<1>(call, [](auto x) { return x * elementary::normal_cdf(x); });
}

void backward(const OperationGradient& g) {
  map_backward<1>(g, 0, {g.inputs[0]}, [](auto x, auto dy) {
    using Real = decltype(x);
    constexpr Real inverse_sqrt_two_pi = static_cast<Real>(0x1.9884533d43651p-2);
    const Real density = inverse_sqrt_two_pi * elementary::exp(static_cast<Real>(-0.5) * x * x);
    return dy * (elementary::normal_cdf(x) + x * density);
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  return call.rule.gelu();
}

}  // namespace

constinit const Operation gelu{.name = "gelu",
                               .description = "x times the normal distribution function of x, exact form",
                               .casts = CastClasses{.apex_o1 = AutocastClass::full_precision},
                               .forward = forward,
                               .backward = backward,
                               .unit_multipliers = unit_multipliers};

}  // namespace sim
