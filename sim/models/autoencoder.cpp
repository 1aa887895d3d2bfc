#include <array>

#include "sim/models/registry.h"

namespace sim {
namespace {

/// Its gradients are small by construction: the mean over batch x pixels begins them near 1/(512 * 784) =
/// 2^-18.6, and every sigmoid on the way back takes at least two octaves, since its slope is at most 1/4.
class Autoencoder final : public Model {
 public:
  explicit Autoencoder(std::size_t inputs) : widths_{inputs, 256, 64, 16, 64, 256, inputs} {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> parameters;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      add_layer(parameters, layers[layer], {widths_[layer + 1], widths_[layer]},
                Initialisation::torch_default);
    }
    return parameters;
  }

  bool is_classifier() const override { return false; }

  ForwardPass forward(Tape& tape, std::span<const Variable> parameters, const Batch& batch) const override {
    const Variable inputs = inputs_of(tape, batch, {batch.size, widths_[0]});
    Variable x = inputs;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      x = tape.apply(linear, {x, parameters[2 * layer], parameters[2 * layer + 1]}, layers[layer]);
      x = tape.apply(sigmoid, {x});
    }
    return {.loss = tape.apply(mean_squared_error, {x, inputs}), .outputs = x};
  }

 private:
  static constexpr std::array<std::string_view, 6> layers{"encoder1", "encoder2", "encoder3",
                                                          "decoder1", "decoder2", "decoder3"};
  std::array<std::size_t, layers.size() + 1> widths_;
};

}  // namespace

std::unique_ptr<Model> make_autoencoder(const Dataset& dataset) {
  return std::make_unique<Autoencoder>(dataset.image_shape().size());
}

}  // namespace sim
