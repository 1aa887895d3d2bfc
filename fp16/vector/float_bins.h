#pragma once
/// Floats counted by biased exponent and by class within the octave. Internal to exponent_histogram.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fp16/bits.h"
#include "fp16/formats.h"

namespace fp16::detail {

/// Trailing significands at which the classes of an octave begin: the power of two, what lies above it,
/// near_next, top. The last is out of reach where 2 - 2^-11 has more digits than the format.
template <const Format& F>
constexpr std::array<Bits<F>, 4> class_begins = [] {
  constexpr Bits<F> end = trailing_mask<F> + 1;
  return std::array<Bits<F>, 4>{0, 1, end - (end >> 10), end - (end >> 11)};
}();

/// Counts of floats. A bin is 4 * biased exponent + class: the first holds the zeros, and the next three the
/// subnormals, of whatever octave.
class FloatBins {
 public:
  static constexpr std::size_t bin_count = 4 << binary32.exponent_bits;

  static constexpr std::uint32_t smallest_magnitude_in(std::size_t bin) {
    return (static_cast<std::uint32_t>(bin / 4) << binary32.trailing_bits()) +
           class_begins<binary32>[bin % 4];
  }

  /// At most 2^30 values; binary16 codes count as the floats that they widen to.
  void add(std::span<const float> values) { add_stored(values); }
  void add(std::span<const std::uint16_t> codes) { add_stored(codes); }

  std::uint64_t operator[](std::size_t bin) const { return bins_[bin]; }
  /// Bits of the largest finite magnitude; 0 when there is none.
  std::uint32_t largest() const { return largest_; }

 private:
  template <class Stored>
  void add_stored(std::span<const Stored> values);

  std::array<std::uint64_t, bin_count> bins_{};
  std::uint32_t largest_ = 0;
};

}  // namespace fp16::detail
