#include <cmath>
#include <string>

#include "sim/models/registry.h"
#include "sim/ops/add.h"
#include "sim/ops/attention_context.h"
#include "sim/ops/attention_scores.h"
#include "sim/ops/dropout.h"
#include "sim/ops/embedding.h"
#include "sim/ops/gelu.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"

namespace sim {
namespace {

std::string name_in_block(int block, std::string_view part) {
  return "block" + std::to_string(block + 1) + "." + std::string(part);
}

/// Embeddings of token and position, then blocks of x + attention(norm(x)), x + mlp(norm(x)), a last norm and
/// a linear map to the vocabulary without bias. Rows are tokens, sequence by sequence.
///
/// Initialised as GPT-2: normal with deviation 0.02, and 0.02 / sqrt(2 layers) where a branch joins the
/// residual stream.
class Transformer final : public Model {
 public:
  Transformer(const TextDataset& text, const TransformerOptions& options)
      : options_(options),
        width_(static_cast<std::size_t>(options.width)),
        vocabulary_(text.vocabulary().size()),
        context_(text.context()) {
    if (options.width % options.heads != 0) {
      throw names::OptionError(TransformerOptions::subject, "width", options.width,
                               "multiples of heads = " + names::number_text(options.heads));
    }
  }

  std::vector<ParameterSpec> parameters() const override {
    constexpr float deviation = 0.02f;
    const auto normal = Initialisation::normal(deviation);
    const auto joining =
        Initialisation::normal(deviation / std::sqrt(2.0f * static_cast<float>(options_.layers)));
    ParameterList list;
    list.add("token.weight", {vocabulary_, width_}, normal);
    list.add("position.weight", {context_, width_}, normal);
    for (int block = 0; block < options_.layers; ++block) {
      list.add_layer_norm(name_in_block(block, "attention.norm"), width_);
      for (const std::string_view part : {"attention.query", "attention.key", "attention.value"})
        list.add_layer(name_in_block(block, part), {width_, width_}, normal);
      list.add_layer(name_in_block(block, "attention.output"), {width_, width_}, joining);
      list.add_layer_norm(name_in_block(block, "mlp.norm"), width_);
      list.add_layer(name_in_block(block, "mlp.hidden"), {4 * width_, width_}, normal);
      list.add_layer(name_in_block(block, "mlp.output"), {width_, 4 * width_}, joining);
    }
    list.add_layer_norm("norm", width_);
    list.add("output.weight", {vocabulary_, width_}, normal);
    return std::move(list).specs();
  }

  bool is_classifier() const override { return true; }

  ForwardPass forward(ForwardContext& context) const override {
    Variable x = embedded(context);
    for (int block = 0; block < options_.layers; ++block) {
      x = context.residual(x, [&](Variable y) { return dropped(context, attention(context, block, y)); });
      x = context.residual(x, [&](Variable y) { return dropped(context, mlp(context, block, y)); });
    }
    x = context.linear("output", context.layer_norm("norm", x));
    return {.loss = context.apply(softmax_cross_entropy, {x},
                                  SoftmaxCrossEntropyOptions{.labels = context.batch().labels}),
            .outputs = {x}};
  }

 private:
  Variable dropped(ForwardContext& context, Variable x) const {
    if (options_.dropout == 0) return x;
    return context.apply(dropout, {x}, DropoutOptions{.probability = options_.dropout});
  }

  Variable embedded(ForwardContext& context) const {
    std::vector<std::int32_t> positions(context.batch().tokens.size());
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i % context_);
    const Variable token = context.apply(embedding, {context.parameter("token.weight")},
                                         EmbeddingOptions{.labels = context.batch().tokens});
    const Variable position = context.apply(embedding, {context.parameter("position.weight")},
                                            EmbeddingOptions{.labels = std::move(positions)});
    return dropped(context, context.apply(add, {token, position}));
  }

  Variable attention(ForwardContext& context, int block, Variable x) const {
    const AttentionOptions shape{.heads = static_cast<std::size_t>(options_.heads), .context = context_};
    x = context.layer_norm(name_in_block(block, "attention.norm"), x);
    const Variable query = context.linear(name_in_block(block, "attention.query"), x);
    const Variable key = context.linear(name_in_block(block, "attention.key"), x);
    const Variable value = context.linear(name_in_block(block, "attention.value"), x);
    const Variable scores = context.apply(attention_scores, {query, key}, shape);
    const Variable weights = context.apply(softmax, {scores}, SoftmaxOptions{.causal = true});
    return context.linear(name_in_block(block, "attention.output"),
                          context.apply(attention_context, {weights, value}, shape));
  }

  Variable mlp(ForwardContext& context, int block, Variable x) const {
    x = context.linear(name_in_block(block, "mlp.hidden"),
                       context.layer_norm(name_in_block(block, "mlp.norm"), x));
    return context.linear(name_in_block(block, "mlp.output"), context.apply(gelu, {x}));
  }

  TransformerOptions options_;
  std::size_t width_, vocabulary_, context_;
};

}  // namespace

std::unique_ptr<Model> make_transformer(const Dataset& dataset, const TransformerOptions& options) {
  return std::make_unique<Transformer>(require_text(dataset, "transformer"), options);
}

}  // namespace sim
