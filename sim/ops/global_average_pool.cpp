#include "sim/ops/global_average_pool.h"

#include "sim/ops/groups.h"
#include "sim/ops/sums.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor output({x.shape()[0], x.shape()[1]}, call.output_format);
  const std::size_t planes = output.size(), pixels = x.size() / planes;
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(call.into(output), planes, {&x}, call.arithmetic.threads,
                     [&](std::size_t, Real* y, const auto& inputs) {
                       const fp16::Format reductions = call.arithmetic.reductions;
                       *y = mean_of_sum(reductions, interleaved_sum(reductions, std::span(inputs[0], pixels)),
                                        pixels);
                     });
  });
  return output;
}

void backward(const OperationGradient& g) {
  const std::size_t planes = g.output.size(), pixels = g.inputs[0]->size() / planes;
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(g.input_gradients[0], planes, {&g.output_gradient}, g.arithmetic.threads,
                     [&](std::size_t, Real* dx, const auto& inputs) {
                       std::fill_n(dx, pixels, inputs[0][0] / static_cast<Real>(pixels));
                     });
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const Tensor& x = *call.inputs[0];
  return call.rule.global_average_pool(x.size() / (x.shape()[0] * x.shape()[1]));
}

}  // namespace

constinit const Operation global_average_pool{.name = "global_average_pool",
                                              .description = "mean of each channel of each image",
                                              .casts = on_no_list,
                                              .forward = forward,
                                              .backward = backward,
                                              .unit_multipliers = unit_multipliers};

}  // namespace sim
