#include "sim/optimizers/adamw_8bit.h"

#include <cmath>
#include <limits>

#include "fp16/config.h"

namespace sim {
namespace {

template <class Real>
FP16_VECTOR_CLONES bool are_finite(std::size_t count, const Real* values) {
  int nonfinite = 0;
  for (std::size_t i = 0; i < count; ++i)
    nonfinite |= static_cast<int>(!(std::fabs(values[i]) <= std::numeric_limits<Real>::max()));
  return nonfinite == 0;
}

template <class Real>
FP16_VECTOR_CLONES void leave_out_nonfinite(const UpdateChunk<Real>& chunk) {
  constexpr Real largest = std::numeric_limits<Real>::max();
  const Real* __restrict__ const gradients = chunk.gradients;
  Real* __restrict__ const first = chunk.moments[0];
  Real* __restrict__ const second = chunk.moments[1];
  Real* __restrict__ const decayed = chunk.decayed;
  Real* __restrict__ const change = chunk.change;
  for (std::size_t i = 0; i < chunk.size; ++i) {
    const bool finite = std::fabs(gradients[i]) <= largest;
    first[i] = finite ? first[i] : 0;
    second[i] = finite ? second[i] : 0;
    decayed[i] = finite ? decayed[i] : chunk.weights[i];
    change[i] = finite ? change[i] : 0;
  }
}

/// Of a parameter whose moments are stored in 8 bits.
template <class Real>
bool has_nonfinite_gradients(const UpdateChunk<Real>& chunk) {
  return chunk.parameter_size >= AdamW8bit::smallest_8bit_size && !are_finite(chunk.size, chunk.gradients);
}

}  // namespace

MomentStorage AdamW8bit::moment_storage(std::size_t moment, std::size_t parameter_size) const {
  if (parameter_size < smallest_8bit_size) return {.format = arithmetic().state};
  return {.map = moment == 0 ? &DynamicMap::with_sign() : &DynamicMap::without_sign()};
}

void AdamW8bit::compute(const UpdateChunk<float>& chunk) const {
  Adam::compute(chunk);
  if (has_nonfinite_gradients(chunk)) leave_out_nonfinite(chunk);
}

void AdamW8bit::compute(const UpdateChunk<double>& chunk) const {
  Adam::compute(chunk);
  if (has_nonfinite_gradients(chunk)) leave_out_nonfinite(chunk);
}

}  // namespace sim
