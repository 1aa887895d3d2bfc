#include "sim/optimizers/adam.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fp16/config.h"
#include "sim/optimizers/tensor_operations.h"
#include "sim/tensor/integer_power.h"

namespace sim {
namespace {

/// In the type that the rule computes in; each rounded to it once.
template <class Real>
struct Coefficients {
  explicit Coefficients(const AdamStep& step)
      : gradient_decay(static_cast<Real>(step.gradient_decay)),
        weight_factor(static_cast<Real>(step.weight_factor)),
        first_weight(static_cast<Real>(1 - step.beta1)),
        beta2(static_cast<Real>(step.beta2)),
        second_weight(static_cast<Real>(1 - step.beta2)),
        epsilon(static_cast<Real>(step.epsilon)),
        minus_step_size(static_cast<Real>(step.minus_step_size)),
        second_correction(static_cast<Real>(step.second_correction)) {}

  Real gradient_decay, weight_factor, first_weight, beta2, second_weight, epsilon, minus_step_size,
      second_correction;
};

/// The new moments and the change of every weight. `lerp` gives the first moment from the old one and the
/// gradient.
template <class Real, class Round, class Lerp>
FP16_VECTOR_CLONES void update_each(const Coefficients<Real>& coefficients, const UpdateChunk<Real>& chunk,
                                    const Real* __restrict__ gradients, Round round, Lerp lerp) {
  const Coefficients<Real> c = coefficients;
  Real* __restrict__ const first = chunk.moments[0];
  Real* __restrict__ const second = chunk.moments[1];
  Real* __restrict__ const change = chunk.change;
  const std::size_t count = chunk.size;
  for (std::size_t i = 0; i < count; ++i) {
    const Real gradient = gradients[i];
    const Real m = round(lerp(c, first[i], gradient));
    const Real v = round(round(c.beta2 * second[i]) + c.second_weight * gradient * gradient);
    const Real denominator = round(round(round(std::sqrt(v)) / c.second_correction) + c.epsilon);
    first[i] = m;
    second[i] = v;
    change[i] = c.minus_step_size * (m / denominator);
  }
}

template <class Real, class Round>
FP16_VECTOR_CLONES void shrink(std::size_t count, Real factor, const Real* __restrict__ weights,
                               Real* __restrict__ decayed, Round round) {
  for (std::size_t i = 0; i < count; ++i) decayed[i] = round(weights[i] * factor);
}

template <class Real, class Round>
void update_chunk(const Coefficients<Real>& c, const UpdateChunk<Real>& chunk, Round round) {
  std::array<Real, UpdateChunk<Real>::capacity> with_decay;
  const Real* gradients = chunk.gradients;
  if (c.gradient_decay != 0) {
    add_product(chunk.size, gradients, c.gradient_decay, chunk.weights, with_decay.data(), round);
    gradients = with_decay.data();
  }
  if (c.first_weight < Real(0.5)) {
    update_each(c, chunk, gradients, round, [](const Coefficients<Real>& by, Real moment, Real gradient) {
      return moment + by.first_weight * (gradient - moment);
    });
  } else {
    update_each(c, chunk, gradients, round, [](const Coefficients<Real>& by, Real moment, Real gradient) {
      return gradient - (gradient - moment) * (1 - by.first_weight);
    });
  }
  if (c.weight_factor != 1) {
    shrink(chunk.size, c.weight_factor, chunk.weights, chunk.decayed, round);
  } else {
    std::copy_n(chunk.weights, chunk.size, chunk.decayed);
  }
}

template <class Real>
void compute_in(const AdamStep& step, fp16::Format operations, const UpdateChunk<Real>& chunk) {
  const Coefficients<Real> coefficients(step);
  with_rounding<Real>(operations, [&](auto round) { update_chunk(coefficients, chunk, round); });
}

}  // namespace

Adam::Adam(const AdamOptions& options, const UpdateArithmetic& arithmetic, WeightDecay decay)
    : Optimizer(arithmetic), options_(names::checked(options)), decay_(decay) {}

void Adam::prepare(double learning_rate) {
  const bool decoupled = decay_ == WeightDecay::decoupled;
  step_ = {.gradient_decay = decoupled ? 0 : options_.weight_decay,
           .weight_factor = decoupled ? 1 - learning_rate * options_.weight_decay : 1,
           .beta1 = options_.beta1,
           .beta2 = options_.beta2,
           .epsilon = options_.epsilon,
           .minus_step_size = -(learning_rate / (1 - integer_power(options_.beta1, steps()))),
           .second_correction = std::sqrt(1 - integer_power(options_.beta2, steps()))};
}

void Adam::compute(const UpdateChunk<float>& chunk) const {
  compute_in(step_, arithmetic().operations, chunk);
}

void Adam::compute(const UpdateChunk<double>& chunk) const {
  compute_in(step_, arithmetic().operations, chunk);
}

}  // namespace sim
