#pragma once
/// What attributes do at the borders of a format, to blocks that were rounded without them, or before they are.
/// Internal to bulk.

#include <cstddef>
#include <cstdint>

#include "fp16/bulk.h"
#include "fp16/vector/bulk_kernels.h"

namespace fp16::detail {

/// The bits of a number of binary32, in any floating-point environment.
inline std::uint32_t float_bits(double value) {
  return encode<binary32>(value).bits;
}

/// 1 where a < b, else 0; for numbers below 2^31. A comparison may become a jump, which would keep a loop scalar.
inline std::uint32_t is_less(std::uint32_t a, std::uint32_t b) {
  return (a - b) >> 31;
}

/// Saturation and canonical NaNs, of codes of binary16 that were made without: infinities become the largest number
/// where `attributes` saturate, NaNs the policy's where it has one for all. Returns whether there were such infinities.
bool apply_borders(const Attributes& attributes, std::uint16_t* codes, std::size_t count);

/// Writes the codes of the NaNs among `in`; the others stay.
template <typename Code>
void write_nans(const EncodeTarget& target, const float* in, Code* codes, std::size_t count);

/// The NaNs among the results of an operation become the first NaN of the operands or, of an invalid operation, what
/// x86 gives.
void choose_nans(const float* a, const float* b, const float* c, float* exact, std::size_t count);

/// A sum that is exactly zero becomes the one of toward_negative: -0, unless both addends are +0.
void lower_zero_sums(ArrayOperation operation, const float* a, const float* b, const float* c, float* exact,
                     std::size_t count);

/// Where numbers cross a border of a format as they are rounded: those of a magnitude, as the bits of a float, of
/// from[negative] and more do; in stochastic rounding, of `random >> shift` more than that.
struct RoundingBorder {
  std::uint32_t from[2];
  bool is_drawn;
  int shift;
};

/// From here on numbers are not tiny.
RoundingBorder tiny_border(const ArrayFormat& format, const Attributes& attributes);

/// FTZ: makes zeros of tiny numbers, from what they were before they were rounded.
template <typename Code>
void flush_tiny(const RoundingBorder& border, std::uint32_t sign_mask, const float* in,
                const std::uint32_t* random, Code* codes, std::size_t count);

/// DAZ: subnormal numbers of `format` become zeros of their sign, where it has both. `out` may be `in`.
void read_subnormals_as_zeros(const Format& format, const float* in, float* out, std::size_t count);

/// What a draw is told from: the digits that a result keeps, and the exponent below which it keeps fewer.
struct DrawBorders {
  int trailing_bits;
  int emin;             ///< a binary32 exponent field
  RoundingBorder tiny;  ///< whether a number crosses this one is drawn, too, if `is_drawn`
};

/// marks[i] = 1 where `exact`, rounded to odd at 24 bits, and 32 random bits do not tell whether
/// floor(fraction * 2^64) > random: where the fraction, known to a unit of exact[i], is not as far from random[i];
/// else 0. Returns whether there are such.
bool mark_open_draws(const DrawBorders& borders, const float* exact, const std::uint32_t* random,
                     std::uint8_t* marks, std::size_t count);

/// The least and the largest magnitude, as the bits of floats.
struct Extremes {
  std::uint32_t smallest, largest;
  std::uint32_t smallest_nonzero;  ///< all ones where all are zero
  std::uint32_t united;            ///< all the bits that are set in one of them
};

Extremes extremes_of(const float* values, std::size_t count);

}  // namespace fp16::detail
