#include "sim/tensor/extremes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "fp16/bits.h"
#include "fp16/codec.h"
#include "fp16/config.h"

namespace sim {
namespace {

/// Magnitudes as codes, which are ordered alike, those of NaNs last; integers vectorise where NaN-aware comparisons of
/// floats do not, and codes of 16 bits need no widening.
template <const fp16::Format& F>
using Magnitude = std::make_signed_t<fp16::Bits<F>>;

template <const fp16::Format& F>
constexpr auto infinite = static_cast<Magnitude<F>>(fp16::infinity_bits<F>);

/// The largest magnitude that is not above `most`.
template <const fp16::Format& F, class Stored>
FP16_VECTOR_CLONES Magnitude<F> largest_up_to(Magnitude<F> most, std::span<const Stored> values) {
  Magnitude<F> largest = 0;
  for (const Stored value : values) {
    const auto magnitude = static_cast<Magnitude<F>>(fp16::magnitude<F>(std::bit_cast<fp16::Bits<F>>(value)));
    const auto counted = magnitude <= most ? magnitude : Magnitude<F>{0};
    largest = counted > largest ? counted : largest;
  }
  return largest;
}

template <const fp16::Format& F>
float value_of(Magnitude<F> magnitude) {
  if constexpr (F == fp16::binary32) return std::bit_cast<float>(magnitude);
  return static_cast<float>(fp16::decode<F>(static_cast<fp16::Bits<F>>(magnitude)));
}

template <const fp16::Format& F, class Stored>
float largest_magnitude_in(std::span<const Stored> values) {
  return value_of<F>(largest_up_to<F>(infinite<F>, values));
}

template <const fp16::Format& F, class Stored>
Extremes extremes_in(std::span<const Stored> values) {
  const Magnitude<F> last = largest_up_to<F>(std::numeric_limits<Magnitude<F>>::max(), values);
  if (last < infinite<F>) return {.max_abs = value_of<F>(last)};
  constexpr auto largest_finite = static_cast<Magnitude<F>>(infinite<F> - 1);
  return {.found_nonfinite = true, .max_abs = value_of<F>(largest_up_to<F>(largest_finite, values))};
}

/// The largest magnitude is rounded to binary32, at most to the largest finite value.
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

float largest_magnitude(std::span<const float> values) {
  return largest_magnitude_in<fp16::binary32>(values);
}

float largest_magnitude(const Tensor& tensor, std::size_t offset, std::size_t count) {
  if (tensor.format() == fp16::binary32)
    return largest_magnitude(tensor.elements<float>().subspan(offset, count));
  const std::span<const std::uint16_t> codes = tensor.elements<std::uint16_t>().subspan(offset, count);
  return tensor.format() == fp16::binary16 ? largest_magnitude_in<fp16::binary16>(codes)
                                           : largest_magnitude_in<fp16::bfloat16>(codes);
}

Extremes extremes_of(const Tensor& tensor) {
  if (tensor.empty()) return {};
  if (is_binary64(tensor)) return extremes_of_doubles(tensor.elements<double>());
  if (tensor.format() == fp16::binary32) return extremes_in<fp16::binary32>(tensor.elements<float>());
  const auto codes = tensor.elements<std::uint16_t>();
  return tensor.format() == fp16::binary16 ? extremes_in<fp16::binary16>(codes)
                                           : extremes_in<fp16::bfloat16>(codes);
}

}  // namespace sim
