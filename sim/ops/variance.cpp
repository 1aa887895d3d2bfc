#include "sim/ops/variance.h"

#include "sim/ops/sum_of_elements.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  const fp16::Format reductions = call.arithmetic.reductions;
  return with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    const auto count = static_cast<Real>(x.size());
    const Real mean = rounded_to(reductions, sum_of_elements<Real>(x, reductions) / count);
    const Real squares = sum_of_elements<Real, 1>(
        {&x}, reductions, [mean](Real value) { return (value - mean) * (value - mean); });
    call.saved.emplace_back(Shape{1}, format_of<Real>);
    store({&call.saved[0]}, 0, std::span<const Real>(&mean, 1));
    return scalar_output(call, squares / (count - 1));
  });
}

/// dx = (x - mean) (2 dy / (n - 1)).
void backward(const OperationGradient& g) {
  const Tensor& x = *g.inputs[0];
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const auto mean = static_cast<Real>(g.saved[0].element(0));
    const Real factor = 2 * static_cast<Real>(g.output_gradient.element(0)) / static_cast<Real>(x.size() - 1);
    map_elements<Real, 1>(
        g.input_gradients[0], {&x}, [mean, factor](Real value) { return (value - mean) * factor; },
        g.arithmetic.threads);
  });
}

}  // namespace

constinit const Operation variance{.name = "variance",
                                   .description = "unbiased variance of all elements",
                                   .casts = CastClasses{.apex_o1 = AutocastClass::full_precision},
                                   .forward = forward,
                                   .backward = backward,
                                   .unit_multipliers = no_unit_multipliers};

}  // namespace sim
