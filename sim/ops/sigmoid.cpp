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

}  // namespace

constinit const Operation sigmoid{
    .name = "sigmoid", .description = "1 / (1 + exp(-x))", .forward = forward, .backward = backward};

}  // namespace sim
