#include "experiments/master_weights/storage.h"

#include <algorithm>
#include <cmath>

#include "sim/tensor/log2.h"

namespace experiments::master_weights {

sim::PrecisionPolicy policy_of(const WeightStorage& storage) {
  sim::PrecisionPolicy policy = sim::find_precision_policy(storage.fp16_model ? "O2" : "fp32");
  policy.weights = storage.format;
  policy.weight_rounding = storage.rounding;
  return policy;
}

double expected_swallowed_share(double ratio, const WeightStorage& storage, Significands significands) {
  constexpr double log2_e = 0x1.71547652b82fep0;
  const bool uniform = significands == Significands::uniform;
  const int precision = storage.format.precision;
  if (storage.rounding == fp16::Rounding::nearest_even) {
    const double t = std::clamp(std::ldexp(ratio, -precision), 1.0, 2.0);
    return uniform ? t - 1 : sim::log2_of(t);
  }
  const double t = std::ldexp(ratio, 1 - precision);
  if (t <= 1) return 0;
  if (t <= 2) return uniform ? (t - 1) * (t - 1) / (2 * t) : sim::log2_of(t) - (t - 1) / t * log2_e;
  return 1 - (uniform ? 1.5 : log2_e) / t;
}

}  // namespace experiments::master_weights
