#include <stdexcept>
#include <string>

#include "sim/models/registry.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/global_average_pool.h"
#include "sim/ops/max_pool2d.h"
#include "sim/ops/relu.h"
#include "sim/ops/softmax_cross_entropy.h"

namespace sim {
namespace {

/// conv1 (c) - pool - conv2 (2c) - pool - residual block of conv3 (2c) - conv4 (4c) - global average -
/// output; 3x3 convolutions without bias, each followed by batch norm and ReLU.
class Cnn final : public Model {
 public:
  Cnn(const ImageDataset& images, const CnnOptions& options)
      : image_(images.image_shape()),
        classes_(static_cast<std::size_t>(images.classes())),
        widths_{static_cast<std::size_t>(image_.channels), static_cast<std::size_t>(options.channels)} {
    if (image_.height < 4 || image_.width < 4) {
      throw std::invalid_argument("model cnn: images of " + std::to_string(image_.height) + "x" +
                                  std::to_string(image_.width) +
                                  " are too small; at least 4x4 are needed for two poolings");
    }
  }

  std::vector<ParameterSpec> parameters() const override {
    ParameterList list;
    for (const Convolution& layer : convolutions()) {
      list.add_layer_without_bias(layer.name, {layer.out, layer.in, 3, 3}, WeightInitialisation::he_uniform);
      list.add_batch_norm(norm_of(layer.name), layer.out);
    }
    list.add_layer("output", {classes_, 4 * widths_.first}, WeightInitialisation::torch_default);
    return std::move(list).specs();
  }

  std::vector<ParameterSpec> buffers() const override {
    std::vector<ParameterSpec> buffers;
    for (const Convolution& layer : convolutions())
      add_running_statistics(buffers, norm_of(layer.name), layer.out);
    return buffers;
  }

  bool is_classifier() const override { return true; }

  ForwardPass forward(ForwardContext& context) const override {
    const auto normalised = [&](std::string_view layer, Variable x) {
      return context.batch_norm(norm_of(layer), context.conv2d(layer, x, {.padding = 1}));
    };
    const auto activated = [&](std::string_view layer, Variable x) {
      return context.apply(relu, {normalised(layer, x)});
    };
    Variable x = context.inputs({context.batch().size, widths_.image, static_cast<std::size_t>(image_.height),
                                 static_cast<std::size_t>(image_.width)});
    x = context.apply(max_pool2d, {activated("conv1", x)});
    x = context.apply(max_pool2d, {activated("conv2", x)});
    x = context.apply(relu, {context.residual(x, [&](Variable y) { return normalised("conv3", y); })});
    x = context.apply(global_average_pool, {activated("conv4", x)});
    x = context.linear("output", x);
    return {.loss = context.apply(softmax_cross_entropy, {x},
                                  SoftmaxCrossEntropyOptions{.labels = context.batch().labels}),
            .outputs = {x}};
  }

 private:
  struct Widths {
    std::size_t image, first;
  };
  struct Convolution {
    std::string_view name;
    std::size_t in, out;
  };

  std::vector<Convolution> convolutions() const {
    const auto [image, c] = widths_;
    return {{"conv1", image, c}, {"conv2", c, 2 * c}, {"conv3", 2 * c, 2 * c}, {"conv4", 2 * c, 4 * c}};
  }
  static std::string norm_of(std::string_view layer) { return std::string(layer) + ".norm"; }

  ImageShape image_;
  std::size_t classes_;
  Widths widths_;
};

}  // namespace

std::unique_ptr<Model> make_cnn(const Dataset& dataset, const CnnOptions& options) {
  return std::make_unique<Cnn>(require_images(dataset, "cnn"), options);
}

}  // namespace sim
