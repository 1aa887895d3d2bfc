#include "sim/ops/lstm.h"

#include <cmath>
#include <string>

#include "sim/models/registry.h"
#include "sim/ops/embedding.h"
#include "sim/ops/softmax_cross_entropy.h"

namespace sim {
namespace {

/// Token embedding, layers of LSTM one above the other, a linear map to the vocabulary. The state of every
/// window starts at zero. All uniform in +-1/sqrt(width), as torch.nn.LSTM.
class Lstm final : public Model {
 public:
  Lstm(const TextDataset& text, const LstmOptions& options)
      : layers_(options.layers),
        width_(static_cast<std::size_t>(options.width)),
        vocabulary_(text.vocabulary().size()),
        context_(text.context()) {}

  std::vector<ParameterSpec> parameters() const override {
    const auto uniform = Initialisation::uniform(1 / std::sqrt(static_cast<float>(width_)));
    ParameterList list;
    list.add("token.weight", {vocabulary_, width_}, Initialisation::normal(1));
    for (int layer = 0; layer < layers_; ++layer) {
      list.add(name_of(layer, "input_weight"), {4 * width_, width_}, uniform);
      list.add(name_of(layer, "hidden_weight"), {4 * width_, width_}, uniform);
      list.add(name_of(layer, "bias"), {4 * width_}, uniform);
    }
    list.add_layer("output", {vocabulary_, width_}, WeightInitialisation::torch_default);
    return std::move(list).specs();
  }

  bool is_classifier() const override { return true; }

  ForwardPass forward(ForwardContext& context) const override {
    Variable x = context.apply(embedding, {context.parameter("token.weight")},
                               EmbeddingOptions{.labels = context.batch().tokens});
    for (int layer = 0; layer < layers_; ++layer) {
      x = context.tape().apply(
          lstm,
          {x, context.parameter(name_of(layer, "input_weight")),
           context.parameter(name_of(layer, "hidden_weight")), context.parameter(name_of(layer, "bias"))},
          "lstm" + std::to_string(layer + 1), LstmLayerOptions{.context = context_});
    }
    x = context.linear("output", x);
    return {.loss = context.apply(softmax_cross_entropy, {x},
                                  SoftmaxCrossEntropyOptions{.labels = context.batch().labels}),
            .outputs = {x}};
  }

 private:
  static std::string name_of(int layer, std::string_view part) {
    return "lstm" + std::to_string(layer + 1) + "." + std::string(part);
  }

  int layers_;
  std::size_t width_, vocabulary_, context_;
};

}  // namespace

std::unique_ptr<Model> make_lstm(const Dataset& dataset, const LstmOptions& options) {
  return std::make_unique<Lstm>(require_text(dataset, "lstm"), options);
}

}  // namespace sim
