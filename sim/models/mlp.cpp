#include <array>

#include "sim/models/registry.h"
#include "sim/ops/relu.h"
#include "sim/ops/softmax_cross_entropy.h"

namespace sim {
namespace {

class Mlp final : public Model {
 public:
  Mlp(const ImageDataset& images, const MlpOptions& options)
      : widths_{images.image_shape().size(), static_cast<std::size_t>(options.hidden1),
                static_cast<std::size_t>(options.hidden2), static_cast<std::size_t>(images.classes())} {}

  std::vector<ParameterSpec> parameters() const override {
    ParameterList list;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      list.add_layer(layers[layer], {widths_[layer + 1], widths_[layer]}, WeightInitialisation::he_uniform);
    }
    return std::move(list).specs();
  }

  bool is_classifier() const override { return true; }

  ForwardPass forward(ForwardContext& context) const override {
    Variable x = context.inputs({context.batch().size, widths_[0]});
    for (const std::string_view layer : layers) {
      x = context.linear(layer, x);
      if (layer != layers.back()) x = context.apply(relu, {x});
    }
    return {.loss = context.apply(softmax_cross_entropy, {x},
                                  SoftmaxCrossEntropyOptions{.labels = context.batch().labels}),
            .outputs = {x}};
  }

 private:
  static constexpr std::array<std::string_view, 3> layers{"hidden1", "hidden2", "output"};
  std::array<std::size_t, layers.size() + 1> widths_;
};

}  // namespace

std::unique_ptr<Model> make_mlp(const Dataset& dataset, const MlpOptions& options) {
  return std::make_unique<Mlp>(require_images(dataset, "mlp"), options);
}

}  // namespace sim
