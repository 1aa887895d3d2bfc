#include <array>

#include "sim/models/registry.h"

namespace sim {
namespace {

class Mlp final : public Model {
 public:
  Mlp(std::size_t inputs, std::size_t classes) : widths_{inputs, 256, 256, classes} {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> parameters;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      add_layer(parameters, layers[layer], {widths_[layer + 1], widths_[layer]}, Initialisation::he_uniform);
    }
    return parameters;
  }

  bool is_classifier() const override { return true; }

  ForwardPass forward(Tape& tape, std::span<const Variable> parameters, const Batch& batch) const override {
    Variable x = inputs_of(tape, batch, {batch.size, widths_[0]});
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      x = tape.apply(linear, {x, parameters[2 * layer], parameters[2 * layer + 1]}, layers[layer]);
      if (layer + 1 < layers.size()) x = tape.apply(relu, {x});
    }
    return {.loss = tape.apply(softmax_cross_entropy, {x}, {}, {.labels = batch.labels}), .outputs = x};
  }

 private:
  static constexpr std::array<std::string_view, 3> layers{"hidden1", "hidden2", "output"};
  std::array<std::size_t, layers.size() + 1> widths_;
};

}  // namespace

std::unique_ptr<Model> make_mlp(const Dataset& dataset) {
  return std::make_unique<Mlp>(dataset.image_shape().size(), static_cast<std::size_t>(dataset.classes()));
}

}  // namespace sim
