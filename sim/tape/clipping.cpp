#include "sim/tape/clipping.h"

#include <cmath>

#include "fp16/config.h"
#include "fp16/names.h"
#include "sim/ops/sums.h"

namespace sim {
namespace {

template <class Real>
FP16_VECTOR_CLONES void multiply_each(std::span<Real> values, Real factor) {
  for (Real& value : values) value *= factor;
}

template <class Real>
FP16_VECTOR_CLONES std::uint64_t clamp_each(std::span<Real> values, Real limit) {
  std::uint64_t replaced = 0;
  for (Real& value : values) {
    replaced += std::fabs(value) > limit;
    value = value > limit ? limit : value;
    value = value < -limit ? -limit : value;
  }
  return replaced;
}

template <class Real>
NormClipping clip_by_norm_of(std::span<const std::span<Real>> gradients, double max_norm) {
  names::checked_option<double>("clipping", "max_norm", max_norm, {.lower = 0});
  SumOfSquares squares;
  for (const std::span<Real> gradient : gradients) squares.add(gradient);
  NormClipping clipping{.norm = std::sqrt(squares.total())};
  const double coefficient = max_norm / (clipping.norm + 1e-6);
  if (coefficient >= 1) return clipping;
  clipping.coefficient = coefficient;
  for (const std::span<Real> gradient : gradients) multiply_each(gradient, static_cast<Real>(coefficient));
  return clipping;
}

template <class Real>
std::uint64_t clip_by_value_of(std::span<const std::span<Real>> gradients, double limit) {
  const Real rounded = names::checked_option<Real>("clipping", "limit", limit, {.lower = 0});
  std::uint64_t replaced = 0;
  for (const std::span<Real> gradient : gradients) replaced += clamp_each(gradient, rounded);
  return replaced;
}

}  // namespace

NormClipping clip_by_norm(std::span<const std::span<float>> gradients, double max_norm) {
  return clip_by_norm_of(gradients, max_norm);
}

NormClipping clip_by_norm(std::span<const std::span<double>> gradients, double max_norm) {
  return clip_by_norm_of(gradients, max_norm);
}

std::uint64_t clip_by_value(std::span<const std::span<float>> gradients, double limit) {
  return clip_by_value_of(gradients, limit);
}

std::uint64_t clip_by_value(std::span<const std::span<double>> gradients, double limit) {
  return clip_by_value_of(gradients, limit);
}

}  // namespace sim
