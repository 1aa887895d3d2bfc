#include "sim/ops/attention_context.h"

#include "sim/ops/attention.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor &p = *call.inputs[0], &v = *call.inputs[1];
  const AttentionSizes s = attention_sizes(v, call.options.get<AttentionOptions>());
  const HeadLayout tokens = layout_of_tokens(s), scores = layout_of_scores(s);
  Tensor output(v.shape(), call.output_format);
  product_of_heads(call.into(output), tokens, {p, scores}, {v, tokens}, s, call.arithmetic);
  return output;
}

void backward(const OperationGradient& g) {
  const Tensor &p = *g.inputs[0], &v = *g.inputs[1], &dy = g.output_gradient;
  const AttentionSizes s = attention_sizes(v, g.options.get<AttentionOptions>());
  const HeadLayout tokens = layout_of_tokens(s), scores = layout_of_scores(s);
  const auto &dp = g.input_gradients[0], &dv = g.input_gradients[1];
  if (dp.tensor) product_of_heads(dp, scores, {dy, tokens}, {v, tokens, true}, s, g.arithmetic);
  if (dv.tensor) product_of_heads(dv, tokens, {p, scores, true}, {dy, tokens}, s, g.arithmetic);
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const auto& [heads, context] = call.options.get<AttentionOptions>();
  return call.rule.matmul(context, context, call.inputs[1]->shape().back() / heads);
}

}  // namespace

constinit const Operation attention_context{
    .name = "attention_context",
    .description = "p v for every sequence and head, p being the softmax of the scores",
    .casts = CastClasses{.torch_autocast = AutocastClass::lower_precision,
                         .apex_o1 = AutocastClass::lower_precision},
    .is_layer = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = unit_multipliers};

}  // namespace sim
