#include "sim/ops/softmax.h"

#include <algorithm>

#include "sim/ops/groups.h"
#include "sim/ops/softmax_rows.h"
#include "sim/ops/sums.h"

namespace sim {
namespace {

/// How many columns from the left a row sees. The rest has probability and gradient 0, whatever it holds.
std::size_t visible_columns(bool causal, std::size_t row, std::size_t columns) {
  return causal ? row % columns + 1 : columns;
}

std::size_t whole_vectors(std::size_t count) {
  return (count + interleaved_lanes - 1) / interleaved_lanes * interleaved_lanes;
}

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  const std::size_t columns = x.shape().back();
  const bool causal = call.options.get<SoftmaxOptions>().causal;
  Tensor output(x.shape(), call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(call.into(output), x.size() / columns, {&x}, call.arithmetic.threads,
                     [&](std::size_t row, Real* probabilities, const auto& inputs) {
                       const std::size_t visible = visible_columns(causal, row, columns);
                       softmax_row(inputs[0], visible, std::min(columns, whole_vectors(visible)),
                                   probabilities, call.arithmetic.reductions);
                       std::fill(probabilities + visible, probabilities + columns, Real{0});
                     });
  });
  return output;
}

/// dx = p (dy - sum of dy p), the sum in the interleaved order, from the stored probabilities p.
void backward(const OperationGradient& g) {
  const std::size_t columns = g.output.shape().back();
  const bool causal = g.options.get<SoftmaxOptions>().causal;
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(
        g.input_gradients[0], g.output.size() / columns, {&g.output, &g.output_gradient},
        g.arithmetic.threads, [&](std::size_t row, Real* dx, const auto& inputs) {
          const Real *p = inputs[0], *dy = inputs[1];
          const std::size_t visible = visible_columns(causal, row, columns);
          const Real sum = interleaved_sum<Real>(
              g.arithmetic.reductions, [](Real probability, Real gradient) { return probability * gradient; },
              visible, p, dy);
          apply_to_each([sum](Real probability, Real gradient) { return probability * (gradient - sum); },
                        visible, dx, p, dy);
          std::fill(dx + visible, dx + columns, Real{0});
        });
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  return call.rule.softmax(call.inputs[0]->shape().back());
}

}  // namespace

constinit const Operation softmax{.name = "softmax",
                                  .description = "exp(x) over its sum along the last dimension",
                                  .casts = CastClasses{.torch_autocast = AutocastClass::full_precision_output,
                                                       .apex_o1 = AutocastClass::full_precision},
                                  .forward = forward,
                                  .backward = backward,
                                  .unit_multipliers = unit_multipliers};

}  // namespace sim
