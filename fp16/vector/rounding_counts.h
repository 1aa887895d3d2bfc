#pragma once
/// What rounding did to the elements of a block, counted without their flags. Internal to bulk.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "fp16/bulk.h"

namespace fp16::detail {

/// Magnitudes, as the bits of floats, that part the outcomes of rounding to a format.
struct CountBorders {
  std::uint32_t min_normal;
  std::uint32_t overflow[2];  ///< from here on positive, negative numbers overflow
  std::uint32_t not_a_loss;   ///< from here on the result stands for the input: a NaN, an infinity held
  std::uint32_t open_from;    ///< from here on to `overflow` only the operation itself tells
};

CountBorders count_borders(const ArrayFormat& format, const Attributes& attributes);

/// `widened` holds the rounded values; `count` must be below 2^32, which keeps the sums in vector lanes.
RoundingCounts count_roundings(const float* in, const float* widened, std::size_t count,
                               const CountBorders& borders);

/// Corrects what was counted by overflows(i) of the elements between the borders. There are few, if any.
template <typename Overflows>
void count_open_overflows(const float* in, std::size_t count, const CountBorders& borders,
                          RoundingCounts& counts, Overflows overflows) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude < borders.open_from || magnitude >= borders.overflow[bits >> 31]) continue;
    const bool overflowed = overflows(i);
    counts.inexact -= overflowed;
    counts.overflowed += overflowed;
  }
}

}  // namespace fp16::detail
