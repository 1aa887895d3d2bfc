#pragma once
/// How many pairs of numbers are how far apart.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace halflab {

/// Distances in steps of a format, counted as 0; 1; 2 and 3; 4 to 7; and so on.
struct UlpHistogram {
  std::array<std::uint64_t, 65> counts{};
  std::uint64_t most = 0;  ///< the largest distance

  void add(std::uint64_t distance) {
    ++counts[static_cast<std::size_t>(std::bit_width(distance))];
    most = std::max(most, distance);
  }

  UlpHistogram& operator+=(const UlpHistogram& other) {
    for (std::size_t bin = 0; bin < counts.size(); ++bin) counts[bin] += other.counts[bin];
    most = std::max(most, other.most);
    return *this;
  }

  /// How many places hold something, or one.
  std::size_t used_bins() const {
    std::size_t bins = counts.size();
    while (bins > 1 && counts[bins - 1] == 0) --bins;
    return bins;
  }

  /// The distances that are counted at this place.
  struct Range {
    std::uint64_t from, to;
  };
  static constexpr Range range(std::size_t bin) {
    if (bin == 0) return {0, 0};
    const std::uint64_t from = std::uint64_t{1} << (bin - 1);
    return {from, 2 * from - 1};
  }
};

}  // namespace halflab
