#include "sim/ops/attention_scores.h"

#include <cmath>

#include "sim/ops/attention.h"

namespace sim {
namespace {

double factor_of(const AttentionSizes& s) {
  return 1 / std::sqrt(static_cast<double>(s.depth()));
}

Tensor forward(OperationCall& call) {
  const Tensor &q = *call.inputs[0], &k = *call.inputs[1];
  const AttentionSizes s = attention_sizes(q, call.options.get<AttentionOptions>());
  const HeadLayout tokens = layout_of_tokens(s), scores = layout_of_scores(s);
  Tensor output({s.batch * s.heads, s.context, s.context}, call.output_format);
  product_of_heads(call.into(output), scores, {q, tokens}, {k, tokens, true}, s, call.arithmetic,
                   factor_of(s));
  return output;
}

void backward(const OperationGradient& g) {
  const Tensor &q = *g.inputs[0], &k = *g.inputs[1], &dy = g.output_gradient;
  const AttentionSizes s = attention_sizes(q, g.options.get<AttentionOptions>());
  const HeadLayout tokens = layout_of_tokens(s), scores = layout_of_scores(s);
  const auto &dq = g.input_gradients[0], &dk = g.input_gradients[1];
  const double factor = factor_of(s);
  if (dq.tensor) product_of_heads(dq, tokens, {dy, scores}, {k, tokens}, s, g.arithmetic, factor);
  if (dk.tensor) product_of_heads(dk, tokens, {dy, scores, true}, {q, tokens}, s, g.arithmetic, factor);
}

}  // namespace

constinit const Operation attention_scores{
    .name = "attention_scores",
    .description = "q k^T / sqrt(depth) for every sequence and head",
    .casts = CastClasses{.torch_autocast = AutocastClass::lower_precision,
                         .apex_o1 = AutocastClass::lower_precision},
    .is_layer = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = no_unit_multipliers};

}  // namespace sim
