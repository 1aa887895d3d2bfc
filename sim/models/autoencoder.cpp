#include <array>

#include "sim/models/registry.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/sigmoid.h"

namespace sim {
namespace {

/// Its gradients are small by construction: the mean over batch x pixels begins them near 1/(512 * 784) =
/// 2^-18.6, and every sigmoid on the way back takes at least two octaves, since its slope is at most 1/4.
class Autoencoder final : public Model {
 public:
  Autoencoder(std::size_t inputs, std::size_t width)
      : widths_{inputs, width, width / 4, width / 16, width / 4, width, inputs} {}

  std::vector<ParameterSpec> parameters() const override {
    ParameterList list;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      list.add_layer(layers[layer], {widths_[layer + 1], widths_[layer]},
                     WeightInitialisation::torch_default);
    }
    return std::move(list).specs();
  }

  bool is_classifier() const override { return false; }

  ForwardPass forward(ForwardContext& context) const override {
    const Variable inputs = context.inputs({context.batch().size, widths_[0]});
    Variable x = inputs;
    for (const std::string_view layer : layers) {
      x = context.apply(sigmoid, {context.linear(layer, x)});
    }
    return {.loss = context.apply(mean_squared_error, {x, inputs}), .outputs = {x}};
  }

 private:
  static constexpr std::array<std::string_view, 6> layers{"encoder1", "encoder2", "encoder3",
                                                          "decoder1", "decoder2", "decoder3"};
  std::array<std::size_t, layers.size() + 1> widths_;
};

}  // namespace

std::unique_ptr<Model> make_autoencoder(const Dataset& dataset, const AutoencoderOptions& options) {
  return std::make_unique<Autoencoder>(require_images(dataset, "autoencoder").image_shape().size(),
                                       static_cast<std::size_t>(options.width));
}

}  // namespace sim
