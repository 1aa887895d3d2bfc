#pragma once

#include <cstdint>
#include <span>

namespace sim {

/// What a cast to binary16, round to nearest even, does to values times a power of two. The six outcomes are
/// disjoint: total = zero_before + flushed + subnormal + normal() + overflowed + nonfinite_before.
struct CastCounts {
  std::uint64_t total = 0;
  std::uint64_t zero_before = 0;       ///< x = 0
  std::uint64_t flushed = 0;           ///< x != 0 becomes zero
  std::uint64_t subnormal = 0;         ///< becomes a non-zero magnitude below 2^-14
  std::uint64_t overflowed = 0;        ///< finite x becomes infinite
  std::uint64_t nonfinite_before = 0;  ///< x is infinite or NaN

  std::uint64_t normal() const {
    return total - zero_before - flushed - subnormal - overflowed - nonfinite_before;
  }
  CastCounts& operator+=(const CastCounts& other);
  bool operator==(const CastCounts&) const = default;
};

/// Counts value by value for the exact products x * 2^log2_scale, by comparing |x| with the edges of the cast
/// divided by the scale. Exact for every scale; independent of ExponentHistogram, which predicts the same
/// numbers for all scales.
CastCounts count_casts(std::span<const float> values, int log2_scale);

}  // namespace sim
