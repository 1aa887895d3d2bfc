#include "sim/ops/log_softmax.h"

#include <vector>

#include "sim/ops/groups.h"
#include "sim/ops/softmax_rows.h"
#include "sim/ops/sums.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  const std::size_t columns = x.shape().back();
  Tensor output(x.shape(), call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(call.into(output), x.size() / columns, {&x}, call.arithmetic.threads,
                     [&](std::size_t, Real* y, const auto& inputs) {
                       const Real largest = largest_of(inputs[0], columns);
                       const Real sum = exponentials_of(inputs[0], columns, columns, largest, y,
                                                        call.arithmetic.reductions);
                       const Real log_sum = elementary::log(sum);
                       apply_to_each([largest, log_sum](Real value) { return (value - largest) - log_sum; },
                                     columns, y, inputs[0]);
                     });
  });
  return output;
}

/// dx = dy - exp(y) (sum of dy), the sum in the interleaved order.
void backward(const OperationGradient& g) {
  const std::size_t columns = g.output.shape().back();
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(g.input_gradients[0], g.output.size() / columns, {&g.output, &g.output_gradient},
                     g.arithmetic.threads, [&](std::size_t, Real* dx, const auto& inputs) {
                       const Real* dy = inputs[1];
                       const Real sum = interleaved_sum(g.arithmetic.reductions, std::span(dy, columns));
                       apply_to_each(
                           [sum](Real y, Real gradient) { return gradient - elementary::exp(y) * sum; },
                           columns, dx, inputs[0], dy);
                     });
  });
}

}  // namespace

constinit const Operation log_softmax{
    .name = "log_softmax",
    .description = "x minus the logarithm of the sum of exp(x) along the last dimension",
    .casts = CastClasses{.torch_autocast = AutocastClass::full_precision_output,
                         .apex_o1 = AutocastClass::full_precision},
    .forward = forward,
    .backward = backward,
    .unit_multipliers = no_unit_multipliers};

}  // namespace sim
