#include "sim/ops/scale.h"

#include "sim/ops/elementwise.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  return map_forward<1>(call, [factor = call.options.get<ScaleOptions>().forward_factor](auto x) {
    return x * static_cast<decltype(x)>(factor);
  });
}

void backward(const OperationGradient& g) {
  map_backward<0>(g, 0, {}, [factor = g.options.get<ScaleOptions>().backward_factor](auto dy) {
    return dy * static_cast<decltype(dy)>(factor);
  });
}

}  // namespace

constinit const Operation scale{
    .name = "scale",
    .description = "x times one constant forward, the gradient times another backward",
    .casts = on_no_list,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = no_unit_multipliers};

}  // namespace sim
