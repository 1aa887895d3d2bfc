#pragma once
/// Updates counted by how small they are beside their weights.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace experiments::master_weights {

/// Updates and swallowed ones by |w|/|d|, in eight bins of equal width to the octave, whose borders are exact:
/// 2^e (1 + k/8). The first and the last bin hold all beyond them.
class RatioHistogram {
 public:
  static constexpr int octaves = 32, bins_per_octave = 8;
  static constexpr std::size_t size = std::size_t{octaves} * bins_per_octave;

  struct Bin {
    std::uint64_t updates = 0;
    std::uint64_t swallowed = 0;

    bool operator==(const Bin&) const = default;
  };

  /// A non-zero update d of w.
  void add(double w, double d, bool swallowed);
  RatioHistogram& operator+=(const RatioHistogram& other);

  std::span<const Bin> bins() const { return bins_; }
  /// The bins of the octaves from 2^first to 2^last added up.
  Bin sum(int first, int last) const;
  /// Where bin number `bin` begins: 1 for the first; of `size` the end of the last.
  static double lower_border(std::size_t bin);

 private:
  std::array<Bin, size> bins_{};
};

}  // namespace experiments::master_weights
