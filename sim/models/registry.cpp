#include "sim/registry.h"

#include <array>
#include <cmath>

#include "sim/models/model.h"
#include "sim/random.h"

namespace sim {
namespace {

constexpr std::array rows{
    ModelRow{.name = "mlp",
             .description = "classifier 784-256-256-10 with ReLU and softmax cross entropy",
             .optimizer = "momentum",
             .learning_rate = 0.05,
             .batch = 128,
             .make = make_mlp},
    ModelRow{.name = "autoencoder",
             .description = "deep autoencoder 784-256-64-16-64-256-784 with sigmoids and mean squared error",
             .optimizer = "adam",
             .learning_rate = 0.01,
             .batch = 512,
             .make = make_autoencoder},
    ModelRow{.name = "cnn",
             .description =
                 "classifier with two 3x3 convolutions, each with ReLU and max pooling, and a linear layer",
             .optimizer = "momentum",
             .learning_rate = 0.02,
             .batch = 64,
             .make = make_cnn},
};
static_assert(has_unique_names(rows));

}  // namespace

std::span<const ModelRow> models() {
  return rows;
}

const ModelRow& find_model(std::string_view name) {
  return find_by_name(models(), "model", name);
}

void add_layer(std::vector<ParameterSpec>& parameters, std::string_view layer, Shape weight,
               Initialisation initialisation) {
  const std::size_t outputs = weight.front();
  const float fan_in = static_cast<float>(element_count(weight) / outputs);
  const bool torch_default = initialisation == Initialisation::torch_default;
  const float weight_bound = std::sqrt((torch_default ? 1.0f : 6.0f) / fan_in);
  parameters.push_back({std::string(layer) + ".weight", std::move(weight), weight_bound});
  parameters.push_back({std::string(layer) + ".bias", {outputs}, torch_default ? weight_bound : 0.0f});
}

std::vector<Tensor> initial_weights(std::span<const ParameterSpec> parameters, std::uint64_t seed) {
  std::vector<Tensor> weights;
  for (const ParameterSpec& parameter : parameters) {
    const RandomStream random(seed, "weights " + parameter.name);
    Tensor& tensor = weights.emplace_back(parameter.shape, fp16::binary32);
    std::uint64_t index = 0;
    for (float& w : tensor.elements<float>()) w = (2 * random.uniform(index++) - 1) * parameter.bound;
  }
  return weights;
}

Variable inputs_of(Tape& tape, const Batch& batch, Shape shape) {
  return tape.constant(Tensor::from(std::move(shape), batch.inputs));
}

}  // namespace sim
