#include "sim/models/model.h"

#include <cmath>

#include "sim/random.h"

namespace sim {

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
