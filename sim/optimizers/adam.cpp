#include "sim/optimizers/adam.h"

#include <cassert>
#include <cmath>

#include "fp16/config.h"

namespace sim {
namespace {

struct Coefficients {
  float first_weight, second_decay, second_weight, step_size, second_correction, epsilon;
};

FP16_VECTOR_CLONES void update_each(const Coefficients& c, std::span<const float> gradients,
                                    std::span<float> first, std::span<float> second,
                                    std::span<float> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float gradient = gradients[i];
    first[i] += c.first_weight * (gradient - first[i]);
    second[i] = c.second_decay * second[i] + c.second_weight * gradient * gradient;
    weights[i] -= c.step_size * (first[i] / (std::sqrt(second[i]) / c.second_correction + c.epsilon));
  }
}

}  // namespace

void Adam::begin_step() {
  beta1_power_ *= options_.beta1;
  beta2_power_ *= options_.beta2;
}

void Adam::update(std::size_t parameter, std::span<float> weights, std::span<const float> gradients) {
  assert(beta1_power_ < 1 && "begin_step() comes before update()");
  require_equal_sizes(parameter, weights, gradients);
  const Coefficients coefficients{
      .first_weight = static_cast<float>(1 - options_.beta1),
      .second_decay = static_cast<float>(options_.beta2),
      .second_weight = static_cast<float>(1 - options_.beta2),
      .step_size = static_cast<float>(options_.learning_rate / (1 - beta1_power_)),
      .second_correction = static_cast<float>(std::sqrt(1 - beta2_power_)),
      .epsilon = static_cast<float>(options_.epsilon),
  };
  update_each(coefficients, gradients, first_moments_.of(parameter, weights.size()),
              second_moments_.of(parameter, weights.size()), weights);
}

}  // namespace sim
