#include "sim/ops/linear.h"

#include "sim/ops/matrix_product.h"
#include "sim/ops/sum_of_elements.h"

namespace sim {
namespace {

struct Sizes {
  std::size_t batch, in_features, out_features;
};

Sizes sizes_of(std::span<const Tensor* const> inputs) {
  const Shape& weights = inputs[1]->shape();
  return {.batch = inputs[0]->size() / weights[1], .in_features = weights[1], .out_features = weights[0]};
}

Tensor forward(OperationCall& call) {
  const auto [batch, in, out] = sizes_of(call.inputs);
  Tensor output({batch, out}, call.output_format);
  const NarrowedOperand x =
      narrowed(call.narrowing, *call.inputs[0], {Product::output, Operand::activations}, {.length = in});
  const NarrowedOperand w =
      narrowed(call.narrowing, *call.inputs[1], {Product::output, Operand::weights}, {.length = in});
  matrix_product(
      call.into(output), x.tensor().matrix(batch, in), w.tensor().matrix(out, in).transposed(),
      call.arithmetic,
      {.factor = x.factor() * w.factor(), .column_bias = call.inputs.size() == 3 ? call.inputs[2] : nullptr});
  return output;
}

void input_gradient(const OperationGradient& g) {
  const auto [batch, in, out] = sizes_of(g.inputs);
  const NarrowedOperand dy = narrowed(g.narrowing, g.output_gradient,
                                      {Product::input_gradient, Operand::gradients}, {.length = out});
  const NarrowedOperand w = narrowed(g.narrowing, *g.inputs[1], {Product::input_gradient, Operand::weights},
                                     {.length = out, .inner = in});
  matrix_product(g.input_gradients[0], dy.tensor().matrix(batch, out), w.tensor().matrix(out, in),
                 g.arithmetic, {.factor = dy.factor() * w.factor()});
}

void weight_gradient(const OperationGradient& g) {
  const auto [batch, in, out] = sizes_of(g.inputs);
  const NarrowedOperand dy =
      narrowed(g.narrowing, g.output_gradient, {Product::weight_gradient, Operand::gradients},
               {.length = batch, .inner = out});
  const NarrowedOperand x =
      narrowed(g.narrowing, *g.inputs[0], {Product::weight_gradient, Operand::activations},
               {.length = batch, .inner = in});
  matrix_product(g.input_gradients[1], dy.tensor().matrix(batch, out).transposed(),
                 x.tensor().matrix(batch, in), g.arithmetic, {.factor = dy.factor() * x.factor()});
}

void backward(const OperationGradient& g) {
  if (g.input_gradients[0].tensor) input_gradient(g);
  if (g.input_gradients[1].tensor) weight_gradient(g);
  if (g.inputs.size() == 3 && g.input_gradients[2].tensor) {
    sum_over_rows(g.input_gradients[2], g.output_gradient, g.arithmetic.reductions);
  }
}

/// The layer called "output" is the readout of the network.
UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const auto [batch, in, out] = sizes_of(call.inputs);
  const LinearSizes sizes{.rows = batch, .fan_in = in, .fan_out = out};
  return call.layer == "output" ? call.rule.readout(sizes) : call.rule.linear(sizes);
}

}  // namespace

constinit const Operation linear{.name = "linear",
                                 .description = "x w^T, plus b where there is one; rounded once",
                                 .casts = CastClasses{.torch_autocast = AutocastClass::lower_precision,
                                                      .apex_o1 = AutocastClass::lower_precision},
                                 .is_layer = true,
                                 .forward = forward,
                                 .backward = backward,
                                 .unit_multipliers = unit_multipliers};

}  // namespace sim
