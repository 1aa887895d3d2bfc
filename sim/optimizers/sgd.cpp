#include "sim/optimizers/sgd.h"

#include "sim/optimizers/moment_buffer.h"

namespace sim {

void Sgd::update(std::size_t parameter, std::span<float> weights, std::span<const float> gradients) {
  require_equal_sizes(parameter, weights, gradients);
  const auto learning_rate = static_cast<float>(options_.learning_rate);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= learning_rate * gradients[i];
}

}  // namespace sim
