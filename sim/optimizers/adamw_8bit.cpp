#include "sim/optimizers/adamw_8bit.h"

#include <cmath>
#include <limits>

#include "fp16/config.h"

namespace sim {
namespace {

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

}  // namespace

MomentStorage AdamW8bit::moment_storage(std::size_t moment, std::size_t parameter_size) const {
  if (parameter_size < smallest_8bit_size) return {.format = arithmetic().state};
  return {.map = moment == 0 ? &DynamicMap::with_sign() : &DynamicMap::without_sign()};
}

void AdamW8bit::compute(const UpdateChunk<float>& chunk) const {
  Adam::compute(chunk);
  if (chunk.parameter_size >= smallest_8bit_size) leave_out_nonfinite(chunk);
}

void AdamW8bit::compute(const UpdateChunk<double>& chunk) const {
  Adam::compute(chunk);
  if (chunk.parameter_size >= smallest_8bit_size) leave_out_nonfinite(chunk);
}

}  // namespace sim
