#include "experiments/master_weights/ratio_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace experiments::master_weights {

void RatioHistogram::add(double w, double d, bool swallowed) {
  constexpr int dropped_bits = 52 - std::countr_zero(unsigned{bins_per_octave});
  constexpr std::uint64_t first = std::bit_cast<std::uint64_t>(1.0) >> dropped_bits;
  const double ratio = std::max(1.0, std::fabs(w) / std::fabs(d));
  const std::uint64_t bin = (std::bit_cast<std::uint64_t>(ratio) >> dropped_bits) - first;
  Bin& counts = bins_[std::min<std::uint64_t>(bin, size - 1)];
  ++counts.updates;
  counts.swallowed += swallowed;
}

RatioHistogram& RatioHistogram::operator+=(const RatioHistogram& other) {
  for (std::size_t bin = 0; bin < size; ++bin) {
    bins_[bin].updates += other.bins_[bin].updates;
    bins_[bin].swallowed += other.bins_[bin].swallowed;
  }
  return *this;
}

RatioHistogram::Bin RatioHistogram::sum(int first, int last) const {
  Bin sum;
  for (int bin = first * bins_per_octave; bin < last * bins_per_octave; ++bin) {
    sum.updates += bins_[static_cast<std::size_t>(bin)].updates;
    sum.swallowed += bins_[static_cast<std::size_t>(bin)].swallowed;
  }
  return sum;
}

double RatioHistogram::lower_border(std::size_t bin) {
  const auto octave = static_cast<int>(bin / bins_per_octave);
  return std::ldexp(1 + static_cast<double>(bin % bins_per_octave) / bins_per_octave, octave);
}

}  // namespace experiments::master_weights
