#include "fp16/vector/float_bins.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "fp16/config.h"
#include "fp16/vector/bulk_templates.h"
#include "fp16/vector/coding.h"

namespace fp16::detail {
namespace {

constexpr int trailing_bits = binary32.trailing_bits();
constexpr std::uint32_t octave = trailing_mask<binary32> + 1;  ///< magnitudes of equal exponent

/// Values that are widened, and made bins or pairs of, at a time.
constexpr std::size_t buffer_size = 1024;
using Buffer = std::array<float, buffer_size>;

const float* widen(const float* values, std::size_t, Buffer&) {
  return values;
}
const float* widen(const std::uint16_t* codes, std::size_t count, Buffer& buffer) {
  kernels_of(active_vector_path()).half_to_float(codes, buffer.data(), count);
  return buffer.data();
}

// One value at a time: any value.

using Bin = std::uint16_t;

constexpr Bin bin_of(std::uint32_t magnitude) {
  std::uint32_t bin = magnitude >> trailing_bits;
  for (const std::uint32_t begin :
       {class_begins<binary32>[1], class_begins<binary32>[2], class_begins<binary32>[3]}) {
    // One more than the biased exponent, by a carry, from `begin` on.
    bin += (magnitude + (octave - begin)) >> trailing_bits;
  }
  return static_cast<Bin>(bin);
}

// An increment waits for the one before it at the same address, and neighbours often share a bin (a
// gradient's zeros): each of `lanes` neighbours has a counter of its own. A bin's counters lie side by side,
// because between tables a page apart the processor mistakes loads for dependent on earlier stores.
constexpr unsigned lanes = 8;
using Counters = std::array<std::uint32_t, lanes * FloatBins::bin_count>;

// Finds each value's counter and returns the bits of the largest finite magnitude. A loop of its own, because
// it vectorises and the increments cannot.
FP16_VECTOR_CLONES std::uint32_t find_counters(const float* values, unsigned count, Bin* counters) {
  // Raised by this much, the bits of infinities and NaNs are negative.
  constexpr std::uint32_t raise = min_normal_bits<binary32>;
  auto largest = static_cast<std::int32_t>(raise);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t magnitude = fp16::magnitude<binary32>(std::bit_cast<std::uint32_t>(values[i]));
    counters[i] = static_cast<Bin>(bin_of(magnitude) * lanes);
    const auto raised = static_cast<std::int32_t>(magnitude + raise);
    largest = raised > largest ? raised : largest;
  }
  return static_cast<std::uint32_t>(largest) - raise;
}

std::uint32_t count_singly(const float* values, std::size_t count, Counters& counters) {
  std::array<Bin, buffer_size> found;
  const std::uint32_t largest = find_counters(values, static_cast<unsigned>(count), found.data());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) ++counters[found[i + lane] + lane];
  }
  for (; i < count; ++i) ++counters[found[i]];
  return largest;
}

// Two values at a time, which takes half the increments: zeros, and in 63 neighbouring octaves all that is below
// near_next. The place of a pair says of each value its exponent modulo 64 and whether it is no power of two.

constexpr std::uint32_t window_octaves = 64;  ///< one of them stands for zero

/// The octaves that are counted in pairs.
struct Window {
  std::uint32_t zero;   ///< counted in the place of zeros: within the octave before `begin`
  std::uint32_t begin;  ///< magnitudes from here
  std::uint32_t end;    ///< to here, infinities and NaNs excluded

  std::size_t exponent_of(std::size_t place) const {
    const std::size_t first = zero >> trailing_bits;
    return first + (place - first) % window_octaves;
  }
};

/// Reaches far down from `largest`, and a little above it, because it is that of a few values.
Window window_below(std::uint32_t largest) {
  const std::uint32_t highest =
      largest == 0 ? static_cast<std::uint32_t>(binary32.bias()) : largest >> trailing_bits;
  const std::uint32_t reserved =
      std::clamp(highest + 8, window_octaves - 1, (1u << binary32.exponent_bits) - 2) - (window_octaves - 1);
  return {.zero = reserved * octave + octave / 2,
          .begin = (reserved + 1) * octave,
          .end = (reserved + window_octaves) * octave};
}

// A buffer is a table of `columns` columns, in each of which all values are counted in pairs or none is: what
// decides it needs no sum over the lanes of a vector.
constexpr std::size_t columns = 32;
constexpr std::size_t rows_of_pairs = buffer_size / columns / 2;
constexpr std::size_t unrolled = 4;

struct Pairs {
  std::array<std::uint32_t, columns> largest;  ///< magnitude in each column
  std::array<std::uint32_t, columns> misfits;  ///< not zero: the column is counted singly
  std::array<std::uint16_t, buffer_size / 2> places;
};

/// What the first or second of two magnitudes contributes to the place of the pair.
[[gnu::always_inline]] inline std::uint32_t place_of(std::uint32_t magnitude, int number) {
  const std::uint32_t exponent = magnitude >> trailing_bits & (window_octaves - 1);
  const std::uint32_t is_no_power = (magnitude ^ (magnitude + (octave - 1))) >> trailing_bits & 1;
  return exponent << 6 * number | is_no_power << (12 + number);
}

FP16_VECTOR_CLONES void find_pairs(const float* __restrict values, const Window& window,
                                   Pairs& __restrict pairs) {
  constexpr std::uint32_t to_near_next = octave - class_begins<binary32>[2];
  const std::uint32_t zero = window.zero, begin_less_1 = window.begin - 1, end = window.end;
  std::array<std::uint32_t, columns> largest{}, smallest_less_1, carries{};
  smallest_less_1.fill(~0u);
  for (std::size_t row = 0; row < rows_of_pairs; row += unrolled) {
    for (std::size_t column = 0; column < columns; ++column) {
#pragma GCC unroll 4
      for (std::size_t next = 0; next < unrolled; ++next) {
        const float* in = values + 2 * (row + next) * columns + column;
        const std::uint32_t first = magnitude<binary32>(std::bit_cast<std::uint32_t>(in[0]));
        const std::uint32_t second = magnitude<binary32>(std::bit_cast<std::uint32_t>(in[columns]));
        largest[column] = std::max(largest[column], std::max(first, second));
        // Ignores zeros.
        smallest_less_1[column] = std::min(smallest_less_1[column], std::min(first - 1, second - 1));
        const std::uint32_t first_or = std::max(first, zero), second_or = std::max(second, zero);
        carries[column] |= (first_or ^ (first_or + to_near_next)) | (second_or ^ (second_or + to_near_next));
        pairs.places[(row + next) * columns + column] =
            static_cast<std::uint16_t>(place_of(first_or, 0) | place_of(second_or, 1));
      }
    }
  }
  for (std::size_t column = 0; column < columns; ++column) {
    pairs.largest[column] = largest[column];
    pairs.misfits[column] =
        (carries[column] & octave) | (smallest_less_1[column] < begin_less_1) | (largest[column] >= end);
  }
}

constexpr std::size_t pair_lanes = 4;
constexpr std::size_t row_size = window_octaves * pair_lanes;
constexpr std::size_t rows = 4 * window_octaves;
/// Counters of each place, for neighbouring pairs, in rows of the same second exponent: 128 KiB.
using PairCounters = std::array<std::uint16_t, rows * row_size>;
/// So many values that no counter wraps.
constexpr std::size_t countable_in_pairs = 2 * pair_lanes * 0xffff / buffer_size * buffer_size;

/// The sums of the rows, and for each class of the first value that of all rows with it.
struct PairSums {
  std::array<std::uint32_t, rows> of_rows;
  std::array<std::array<std::uint32_t, row_size>, 2> of_columns;
};

FP16_VECTOR_CLONES void sum_pairs(const PairCounters& counters, PairSums& sums) {
  sums = {};
  for (std::size_t row = 0; row < rows; ++row) {
    std::uint32_t sum = 0;
    const std::uint16_t* in_row = &counters[row * row_size];
    std::uint32_t* columns = sums.of_columns[row / window_octaves % 2].data();
    for (std::size_t i = 0; i < row_size; ++i) {
      sum += in_row[i];
      columns[i] += in_row[i];
    }
    sums.of_rows[row] = sum;
  }
}

/// A buffer that is fetched a little with every column of another: all at once would make the others wait.
class Upcoming {
 public:
  template <class Stored>
  explicit Upcoming(const Stored* values)
      : bytes_(reinterpret_cast<const char*>(values)), step_(buffer_size / columns * sizeof(Stored)) {}

  void prefetch(std::size_t column) const {
    for (std::size_t byte = 0; byte < step_; byte += 64) __builtin_prefetch(bytes_ + column * step_ + byte);
  }

 private:
  const char* bytes_;
  std::size_t step_;
};

/// Counts buffers. Made only for long arrays, because to empty it takes microseconds.
class PairCounter {
 public:
  explicit PairCounter(const Window& window) : window_(window) {}

  /// Returns the largest finite magnitude.
  std::uint32_t count(const float* values, const Upcoming& upcoming, Counters& singles) {
    Pairs pairs;
    find_pairs(values, window_, pairs);
    std::uint32_t largest = 0;
    for (std::size_t column = 0; column < columns; ++column) {
      upcoming.prefetch(column);
      if (pairs.misfits[column] == 0) {
        count_places(&pairs.places[column]);
        largest = std::max(largest, pairs.largest[column]);
      } else {
        largest = std::max(largest, count_column(values + column, singles));
      }
    }
    return largest;
  }

  void add_to(std::array<std::uint64_t, FloatBins::bin_count>& bins) const {
    PairSums sums;
    sum_pairs(counters_, sums);
    for (std::size_t row = 0; row < rows; ++row)
      bins[bin_of_place(row % window_octaves, row / (2 * window_octaves))] += sums.of_rows[row];
    for (const std::size_t is_no_power : {0, 1}) {
      for (std::size_t i = 0; i < row_size; ++i)
        bins[bin_of_place(i / pair_lanes, is_no_power)] += sums.of_columns[is_no_power][i];
    }
  }

 private:
  void count_places(const std::uint16_t* column) {
    for (std::size_t row = 0; row < rows_of_pairs; row += pair_lanes) {
      for (std::size_t lane = 0; lane < pair_lanes; ++lane)
        ++counters_[column[(row + lane) * columns] * pair_lanes + lane];
    }
  }

  static std::uint32_t count_column(const float* column, Counters& singles) {
    std::array<float, 2 * rows_of_pairs> values;
    for (std::size_t row = 0; row < values.size(); ++row) values[row] = column[row * columns];
    return count_singly(values.data(), values.size(), singles);
  }

  std::size_t bin_of_place(std::size_t place, std::size_t is_no_power) const {
    const std::size_t exponent = window_.exponent_of(place);
    return exponent == window_.zero >> trailing_bits ? 0 : 4 * exponent + is_no_power;
  }

  Window window_;
  PairCounters counters_{};
};

/// `values` are whole buffers.
template <class Stored>
std::uint32_t count_in_pairs(std::span<const Stored> values, const Window& window, Counters& singles,
                             std::array<std::uint64_t, FloatBins::bin_count>& bins) {
  PairCounter pairs(window);
  Buffer buffer;
  std::uint32_t largest = 0;
  for (std::size_t start = 0; start < values.size(); start += buffer_size) {
    const float* floats = widen(&values[start], buffer_size, buffer);
    const std::size_t later = std::min(start + 4 * buffer_size, values.size() - buffer_size);
    largest = std::max(largest, pairs.count(floats, Upcoming(&values[later]), singles));
  }
  pairs.add_to(bins);
  return largest;
}

}  // namespace

template <class Stored>
void FloatBins::add_stored(std::span<const Stored> values) {
  constexpr std::size_t many = std::size_t{1} << 16;
  Counters counters{};
  Buffer buffer;
  while (!values.empty()) {
    const std::size_t size = std::min(values.size(), buffer_size);
    const std::uint32_t largest = count_singly(widen(values.data(), size, buffer), size, counters);
    largest_ = std::max(largest_, largest);
    values = values.subspan(size);
    if (values.size() < many) continue;
    const std::size_t in_pairs = std::min(values.size() / buffer_size * buffer_size, countable_in_pairs);
    largest_ =
        std::max(largest_, count_in_pairs(values.first(in_pairs), window_below(largest), counters, bins_));
    values = values.subspan(in_pairs);
  }
  for (std::size_t bin = 0; bin < bin_count; ++bin) {
    const auto* of_lanes = &counters[bin * lanes];
    bins_[bin] += std::accumulate(of_lanes, of_lanes + lanes, std::uint64_t{0});
  }
}

template void FloatBins::add_stored(std::span<const float>);
template void FloatBins::add_stored(std::span<const std::uint16_t>);

}  // namespace fp16::detail
