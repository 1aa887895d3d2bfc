#include <stdexcept>
#include <string>

#include "sim/models/registry.h"

namespace sim {
namespace {

class Cnn final : public Model {
 public:
  Cnn(ImageShape image, std::size_t classes)
      : channels_(static_cast<std::size_t>(image.channels)),
        height_(static_cast<std::size_t>(image.height)),
        width_(static_cast<std::size_t>(image.width)),
        classes_(classes) {
    if (height_ < 4 || width_ < 4) {
      throw std::invalid_argument("model cnn: images of " + std::to_string(height_) + "x" +
                                  std::to_string(width_) +
                                  " are too small; at least 4x4 are needed for two poolings");
    }
  }

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> parameters;
    add_layer(parameters, "conv1", {features1, channels_, 3, 3}, Initialisation::he_uniform);
    add_layer(parameters, "conv2", {features2, features1, 3, 3}, Initialisation::he_uniform);
    add_layer(parameters, "output", {classes_, features2 * (height_ / 4) * (width_ / 4)},
              Initialisation::he_uniform);
    return parameters;
  }

  bool is_classifier() const override { return true; }

  ForwardPass forward(Tape& tape, std::span<const Variable> p, const Batch& batch) const override {
    Variable x = inputs_of(tape, batch, {batch.size, channels_, height_, width_});
    x = tape.apply(conv2d, {x, p[0], p[1]}, "conv1", {.padding = 1});
    x = tape.apply(max_pool2d, {tape.apply(relu, {x})});
    x = tape.apply(conv2d, {x, p[2], p[3]}, "conv2", {.padding = 1});
    x = tape.apply(max_pool2d, {tape.apply(relu, {x})});
    x = tape.apply(linear, {x, p[4], p[5]}, "output");
    return {.loss = tape.apply(softmax_cross_entropy, {x}, {}, {.labels = batch.labels}), .outputs = x};
  }

 private:
  static constexpr std::size_t features1 = 8, features2 = 16;
  std::size_t channels_, height_, width_, classes_;
};

}  // namespace

std::unique_ptr<Model> make_cnn(const Dataset& dataset) {
  return std::make_unique<Cnn>(dataset.image_shape(), static_cast<std::size_t>(dataset.classes()));
}

}  // namespace sim
