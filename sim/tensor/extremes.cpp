#include "sim/tensor/extremes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "fp16/bits.h"
#include "fp16/config.h"

namespace sim {
namespace {

/// Magnitudes of floats as their bits, which are ordered alike, those of NaNs last; integers vectorise where
/// NaN-aware float comparisons do not.
std::int32_t magnitude_of(float value) {
  return static_cast<std::int32_t>(fp16::magnitude<fp16::binary32>(std::bit_cast<std::uint32_t>(value)));
}

struct Magnitudes {
  std::int32_t largest = 0;
  std::int32_t largest_finite = 0;
};

constexpr auto infinite = static_cast<std::int32_t>(fp16::infinity_bits<fp16::binary32>);

FP16_VECTOR_CLONES Magnitudes magnitudes_of(std::span<const float> values) {
  Magnitudes result;
  for (const float value : values) {
    const std::int32_t magnitude = magnitude_of(value);
    const std::int32_t finite = magnitude < infinite ? magnitude : 0;
    result.largest = magnitude > result.largest ? magnitude : result.largest;
    result.largest_finite = finite > result.largest_finite ? finite : result.largest_finite;
  }
  return result;
}

/// Extremes of a binary64 tensor; the largest magnitude is rounded to binary32, at most to the largest finite value.
Extremes extremes_of_doubles(std::span<const double> values) {
  constexpr float largest = std::numeric_limits<float>::max();
  Extremes extremes;
  for (const double value : values) {
    const bool finite = std::isfinite(value);
    extremes.found_nonfinite |= !finite;
    if (!finite) continue;
    const double magnitude = std::min<double>(std::fabs(value), largest);
    extremes.max_abs = std::max(extremes.max_abs, static_cast<float>(magnitude));
  }
  return extremes;
}

}  // namespace

FP16_VECTOR_CLONES float largest_magnitude(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float value : values) {
    const std::int32_t magnitude = magnitude_of(value);
    const std::int32_t counted = magnitude <= infinite ? magnitude : 0;
    largest = counted > largest ? counted : largest;
  }
  return std::bit_cast<float>(largest);
}

Extremes extremes_of(const Tensor& tensor) {
  if (is_binary64(tensor)) return extremes_of_doubles(tensor.elements<double>());
  Magnitudes all;
  for_each_piece(tensor, [&](std::span<const float> values) {
    const Magnitudes piece = magnitudes_of(values);
    all.largest = std::max(all.largest, piece.largest);
    all.largest_finite = std::max(all.largest_finite, piece.largest_finite);
  });
  return {.found_nonfinite = all.largest >= infinite, .max_abs = std::bit_cast<float>(all.largest_finite)};
}

}  // namespace sim
