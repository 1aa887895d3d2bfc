#include "sim/optimizers/momentum.h"

namespace sim {

void Momentum::update(std::size_t parameter, std::span<float> weights, std::span<const float> gradients) {
  require_equal_sizes(parameter, weights, gradients);
  const std::span<float> velocities = velocities_.of(parameter, weights.size());
  const auto learning_rate = static_cast<float>(options_.learning_rate);
  const auto momentum = static_cast<float>(options_.momentum);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    velocities[i] = momentum * velocities[i] + gradients[i];
    weights[i] -= learning_rate * velocities[i];
  }
}

}  // namespace sim
