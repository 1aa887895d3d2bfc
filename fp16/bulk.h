#pragma once
/// Conversions between float and half over arrays. Every path gives the bits of codec.h, those of NaNs
/// included.
///
/// All rounding is to nearest-even. The floating-point environment must be the default one (round to
/// nearest); its status flags are left unspecified. `in` and `out` must have the same length, else
/// std::invalid_argument is thrown; they must not overlap and may have any alignment their types allow.
/// A `path` that this processor lacks throws std::invalid_argument.

#include <cstdint>
#include <span>

#include "fp16/vector_path.h"

namespace fp16 {

/// What rounding did to an array. Every element is counted in exactly one of exact, inexact and overflowed;
/// `subnormal` and `flushed` are counted besides.
struct RoundingCounts {
  std::uint64_t exact = 0;       ///< the result equals the input, as zeros, infinities and NaNs do
  std::uint64_t inexact = 0;     ///< the result is finite and differs from the input
  std::uint64_t subnormal = 0;   ///< 0 < |result| < 2^-14, exact or not
  std::uint64_t flushed = 0;     ///< the input is not zero and the result is: |input| <= 2^-25; also inexact
  std::uint64_t overflowed = 0;  ///< the input is finite and the result infinite: |input| >= 65520

  RoundingCounts& operator+=(const RoundingCounts& other) {
    exact += other.exact;
    inexact += other.inexact;
    subnormal += other.subnormal;
    flushed += other.flushed;
    overflowed += other.overflowed;
    return *this;
  }
  friend bool operator==(const RoundingCounts&, const RoundingCounts&) = default;
};

/// out[i] = float_to_half_bits(in[i])
void float_to_half(std::span<const float> in, std::span<std::uint16_t> out);
void float_to_half(std::span<const float> in, std::span<std::uint16_t> out, VectorPath path);

/// The same; what the rounding did is added to `counts`.
void float_to_half(std::span<const float> in, std::span<std::uint16_t> out, RoundingCounts& counts);
void float_to_half(std::span<const float> in, std::span<std::uint16_t> out, RoundingCounts& counts,
                   VectorPath path);

/// out[i] = half_bits_to_float(in[i])
void half_to_float(std::span<const std::uint16_t> in, std::span<float> out);
void half_to_float(std::span<const std::uint16_t> in, std::span<float> out, VectorPath path);

}  // namespace fp16
