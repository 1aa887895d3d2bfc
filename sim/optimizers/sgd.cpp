#include "sim/optimizers/sgd.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "fp16/config.h"
#include "sim/optimizers/tensor_operations.h"

namespace sim {
namespace {

template <class Real, class Round>
FP16_VECTOR_CLONES void add_momentum(std::size_t count, Real momentum, Real* __restrict__ velocities,
                                     const Real* __restrict__ steps, Round round) {
  for (std::size_t i = 0; i < count; ++i) velocities[i] = round(round(momentum * velocities[i]) + steps[i]);
}

template <class Real>
FP16_VECTOR_CLONES void multiply_each(std::size_t count, Real factor, const Real* __restrict__ in,
                                      Real* __restrict__ out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = factor * in[i];
}

/// Options in the type that the rule computes in, each rounded to it once.
template <class Real>
struct Coefficients {
  Real weight_decay, momentum, minus_learning_rate;
  bool nesterov;
};

template <class Real, class Round>
void update_chunk(const Coefficients<Real>& c, const UpdateChunk<Real>& chunk, Round round) {
  std::array<Real, UpdateChunk<Real>::capacity> with_decay, ahead;
  const Real* step = chunk.gradients;
  if (c.weight_decay != 0) {
    add_product(chunk.size, step, c.weight_decay, chunk.weights, with_decay.data(), round);
    step = with_decay.data();
  }
  if (c.momentum != 0) {
    Real* const velocities = chunk.moments[0];
    add_momentum(chunk.size, c.momentum, velocities, step, round);
    if (c.nesterov) {
      add_product(chunk.size, step, c.momentum, velocities, ahead.data(), round);
      step = ahead.data();
    } else {
      step = velocities;
    }
  }
  multiply_each(chunk.size, c.minus_learning_rate, step, chunk.change);
  std::copy_n(chunk.weights, chunk.size, chunk.decayed);
}

template <class Real>
void compute_in(const SgdOptions& options, double learning_rate, fp16::Format operations,
                const UpdateChunk<Real>& chunk) {
  const Coefficients<Real> coefficients{.weight_decay = static_cast<Real>(options.weight_decay),
                                        .momentum = static_cast<Real>(options.momentum),
                                        .minus_learning_rate = static_cast<Real>(-learning_rate),
                                        .nesterov = options.nesterov == 1};
  with_rounding<Real>(operations, [&](auto round) { update_chunk(coefficients, chunk, round); });
}

}  // namespace

Sgd::Sgd(const SgdOptions& options, const UpdateArithmetic& arithmetic)
    : Optimizer(arithmetic), options_(names::checked(options)) {
  if (options.nesterov == 1 && options.momentum == 0) {
    throw std::invalid_argument(
        "optimizer 'sgd': nesterov = 1 is not allowed with momentum = 0; allowed: momentum in (0, 1)");
  }
}

void Sgd::compute(const UpdateChunk<float>& chunk) const {
  compute_in(options_, learning_rate_, arithmetic().operations, chunk);
}

void Sgd::compute(const UpdateChunk<double>& chunk) const {
  compute_in(options_, learning_rate_, arithmetic().operations, chunk);
}

}  // namespace sim
