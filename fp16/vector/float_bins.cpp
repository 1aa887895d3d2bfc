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

// A buffer at a time. Each value sets the bit of its octave in a word, and vertical counters count the bits of all words: all
// octaves in as many operations as one would take alone.

// A buffer is a table of `columns` columns, whose counters are lanes of a vector.
constexpr std::size_t columns = 32;
constexpr unsigned row_bits = 5;
constexpr std::size_t rows = std::size_t{1} << row_bits;
static_assert(rows * columns == buffer_size);

/// How many octaves have bits, and whether their powers of two have bits of their own: what is not needed saves operations.
template <bool is_wide, bool with_powers>
struct Kind {
  static constexpr bool wide = is_wide, powers = with_powers;
  static constexpr std::uint32_t octaves = wide ? 63 : 31;
  static constexpr std::size_t octave_words = wide ? 2 : 1;
  static constexpr std::size_t words = octave_words * (powers ? 2 : 1);
};

/// Bits of a value, from the lowest octave on. The bit after that of the highest octave is that of zeros.
template <class Kind>
using Word = std::array<std::uint32_t, Kind::words>;

/// What zeros are counted as.
template <class Kind>
constexpr std::uint32_t zero_distance = Kind::octaves << trailing_bits;

/// Neighbouring octaves.
class Window {
 public:
  /// Reaches a little above `largest`, because it is that of a few values, and far down.
  Window(std::uint32_t largest, std::uint32_t octaves) {
    const std::uint32_t highest =
        largest == 0 ? static_cast<std::uint32_t>(binary32.bias()) : largest >> trailing_bits;
    // The power of two at the end is within reach, and infinity must not be.
    const std::uint32_t end = std::clamp(highest + 4, octaves + 1, (1u << binary32.exponent_bits) - 2);
    first_exponent_ = end - octaves;
    offset_ = ~(first_exponent_ << trailing_bits);
  }

  std::uint32_t first_exponent() const { return first_exponent_; }

  /// Added to a magnitude it gives its distance from the first octave, less one: a power of two is the last of the octave
  /// before. In the order of unsigned numbers magnitudes within the window come first, then those above it, zero, those below
  /// it. The order of signed numbers is that of the magnitudes.
  std::uint32_t offset() const { return offset_; }

 private:
  std::uint32_t first_exponent_;
  std::uint32_t offset_;  ///< kept, lest compilers add its two parts one after the other
};

/// The fraction in the upper bits, so that it can be compared.
constexpr std::uint32_t raised_fraction(std::uint32_t bits) {
  return bits << (32 - trailing_bits);
}
/// Fractions from here on are near_next or top.
constexpr std::uint32_t near_next = raised_fraction(class_begins<binary32>[2]);

/// Whether a value is counted where it belongs, by the raised fraction of its magnitude. Without words for powers of two, their
/// fraction is taken for the largest.
template <class Kind>
constexpr std::uint32_t fraction_of(std::uint32_t counted) {
  return raised_fraction(Kind::powers ? counted + 1 : counted);
}
template <class Kind>
constexpr std::uint32_t plain_end = Kind::powers ? near_next : near_next - raised_fraction(1);

/// The extremes of a column's distances.
struct Extremes {
  std::uint32_t last;    ///< in the order of unsigned numbers
  std::int32_t largest;  ///< in that of magnitudes
  std::uint32_t fraction;
};

template <class Kind>
Word<Kind> word_of(float value, std::uint32_t offset, Extremes& extremes) {
  const std::uint32_t distance = magnitude<binary32>(std::bit_cast<std::uint32_t>(value)) + offset;
  const std::uint32_t counted = distance < zero_distance<Kind> ? distance : zero_distance<Kind>;
  const std::uint32_t fraction = fraction_of<Kind>(counted);
  extremes.last = std::max(extremes.last, distance);
  extremes.largest = std::max(extremes.largest, static_cast<std::int32_t>(distance));
  extremes.fraction = std::max(extremes.fraction, fraction);
  const std::uint32_t place = counted >> trailing_bits, bit = 1u << (place & 31);
  const std::uint32_t is_low = !Kind::wide || place < 32 ? ~0u : 0, is_power = fraction == 0 ? ~0u : 0;
  const std::uint32_t low = bit & is_low, high = bit & ~is_low;
  if constexpr (Kind::wide && Kind::powers) {
    return {low, high, low & is_power, high & is_power};
  } else if constexpr (Kind::wide) {
    return {low, high};
  } else if constexpr (Kind::powers) {
    return {low, low & is_power};
  } else {
    return {low};
  }
}

/// Counts the bits of 2^level rows by full adders. `digits` are the lower binary digits of the counts of a column so far; returns
/// the carries out of them.
template <class Kind, unsigned level>
Word<Kind> count_rows(const float* column, std::uint32_t offset, Extremes& extremes, Word<Kind>* digits) {
  if constexpr (level == 0) {
    return word_of<Kind>(*column, offset, extremes);
  } else {
    const Word<Kind> a = count_rows<Kind, level - 1>(column, offset, extremes, digits);
    const Word<Kind> b =
        count_rows<Kind, level - 1>(column + (columns << (level - 1)), offset, extremes, digits);
    Word<Kind> carry;
    for (std::size_t i = 0; i < Kind::words; ++i) {
      std::uint32_t& digit = digits[level - 1][i];
      const std::uint32_t differ = a[i] ^ b[i];
      carry[i] = (differ & digit) | (~differ & a[i]);
      digit ^= differ;
    }
    return carry;
  }
}

/// Binary digits of the counts of each bit and column.
constexpr unsigned digit_count = 16;
template <class Kind>
using Digits = std::array<std::array<std::array<std::uint32_t, columns>, Kind::words>, digit_count>;

struct ColumnsFound {
  std::uint32_t largest;  ///< magnitude of the columns that are not special
  std::uint32_t special;  ///< bit i: in column i are values that are not counted where they belong
};

template <class Kind>
ColumnsFound count_columns(const float* __restrict values, std::uint32_t offset,
                           Digits<Kind>& __restrict digits) {
  std::array<std::uint32_t, columns> largest;
  std::uint32_t special = 0;
  for (std::uint32_t column = 0; column < columns; ++column) {
    Extremes extremes{.last = 0, .largest = static_cast<std::int32_t>(offset), .fraction = 0};
    std::array<Word<Kind>, row_bits> lower;
    for (unsigned digit = 0; digit < row_bits; ++digit) {
      for (std::size_t i = 0; i < Kind::words; ++i) lower[digit][i] = digits[digit][i][column];
    }
    Word<Kind> carry = count_rows<Kind, row_bits>(values + column, offset, extremes, lower.data());
    for (std::size_t i = 0; i < Kind::words; ++i) {
      for (unsigned digit = 0; digit < row_bits; ++digit) digits[digit][i][column] = lower[digit][i];
      for (unsigned digit = row_bits; digit < digit_count; ++digit) {
        const std::uint32_t before = digits[digit][i][column];
        digits[digit][i][column] = before ^ carry[i];
        carry[i] &= before;
      }
    }
    const std::uint32_t is_special =
        (extremes.last > offset ? 1u : 0u) |
        (extremes.largest >= static_cast<std::int32_t>(zero_distance<Kind>) ? 1u : 0u) |
        (extremes.fraction >= plain_end<Kind> ? 1u : 0u);
    special |= is_special << column;
    largest[column] = (static_cast<std::uint32_t>(extremes.largest) - offset) & (is_special - 1);
  }
  return {std::ranges::max(largest), special};
}

using Narrow = Kind<false, false>;
using NarrowPowers = Kind<false, true>;
using Wide = Kind<true, false>;
using WidePowers = Kind<true, true>;
[[gnu::flatten]] FP16_VECTOR_CLONES ColumnsFound count_buffer(Narrow, const float* values,
                                                              std::uint32_t offset, Digits<Narrow>& digits) {
  return count_columns<Narrow>(values, offset, digits);
}
[[gnu::flatten]] FP16_VECTOR_CLONES ColumnsFound count_buffer(NarrowPowers, const float* values,
                                                              std::uint32_t offset,
                                                              Digits<NarrowPowers>& digits) {
  return count_columns<NarrowPowers>(values, offset, digits);
}
[[gnu::flatten]] FP16_VECTOR_CLONES ColumnsFound count_buffer(Wide, const float* values, std::uint32_t offset,
                                                              Digits<Wide>& digits) {
  return count_columns<Wide>(values, offset, digits);
}
[[gnu::flatten]] FP16_VECTOR_CLONES ColumnsFound count_buffer(WidePowers, const float* values,
                                                              std::uint32_t offset,
                                                              Digits<WidePowers>& digits) {
  return count_columns<WidePowers>(values, offset, digits);
}

/// Adds 2^digit for each set bit to the count of its place in the word.
FP16_VECTOR_CLONES void add_bits(const std::array<std::uint32_t, columns>& words, unsigned digit,
                                 std::uint32_t* counts) {
  for (const std::uint32_t word : words) {
    for (unsigned i = 0; i < 32; ++i) counts[i] += (word >> i & 1) << digit;
  }
}

/// Counts buffers.
template <class Kind>
class ColumnCounter {
 public:
  /// So many values that no count has more digits than there are.
  static constexpr std::size_t countable = ((1u << digit_count) - 1) / rows * buffer_size;

  explicit ColumnCounter(std::uint32_t largest) : window_(largest, Kind::octaves) {}

  /// Returns the largest finite magnitude.
  std::uint32_t count(const float* values, Counters& singles) {
    const ColumnsFound found = count_buffer(Kind(), values, window_.offset(), digits_);
    std::uint32_t largest = found.largest;
    for (std::uint32_t rest = found.special; rest != 0; rest &= rest - 1)
      largest = std::max(largest, correct(values + std::countr_zero(rest), singles));
    return largest;
  }

  /// Values that had to be counted singly, for their octave or for the rest.
  std::size_t outside() const { return moved_of(Kind::octaves); }
  std::size_t corrected() const { return corrected_; }

  void add_to(std::array<std::uint64_t, FloatBins::bin_count>& bins) const {
    std::array<std::uint32_t, 32 * Kind::words> counts{};
    for (unsigned digit = 0; digit < digit_count; ++digit) {
      for (std::size_t i = 0; i < Kind::words; ++i) add_bits(digits_[digit][i], digit, &counts[32 * i]);
    }
    for (std::uint32_t i = 0; i < Kind::octaves; ++i) {
      const std::uint32_t powers = Kind::powers ? counts[Kind::octaves + 1 + i] : 0;
      std::uint64_t* of_octave = &bins[4 * (window_.first_exponent() + i)];
      of_octave[1] += counts[i] - powers - moved_of(i);
      of_octave[4] += powers;
    }
    bins[0] += counts[Kind::octaves] - moved_of(Kind::octaves);
  }

 private:
  /// Moves what is not counted where it belongs to bins of its own. Returns the largest finite magnitude of the column.
  std::uint32_t correct(const float* column, Counters& singles) {
    std::uint32_t largest = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint32_t found = magnitude<binary32>(std::bit_cast<std::uint32_t>(column[row * columns]));
      const std::uint32_t counted = std::min(found + window_.offset(), zero_distance<Kind>);
      if (found < infinity_bits<binary32>) largest = std::max(largest, found);
      const bool is_counted =
          found == 0 || (counted < zero_distance<Kind> && fraction_of<Kind>(counted) < plain_end<Kind>);
      if (is_counted) continue;
      ++corrected_;
      ++moved_[(counted >> trailing_bits) * lanes + row % lanes];
      ++singles[bin_of(found) * lanes + row % lanes];
    }
    return largest;
  }

  std::uint32_t moved_of(std::size_t place) const {
    return std::accumulate(&moved_[place * lanes], &moved_[place * lanes] + lanes, std::uint32_t{0});
  }

  Window window_;
  std::size_t corrected_ = 0;
  std::array<std::uint32_t, (Kind::octaves + 1) * lanes> moved_{};  ///< out of this place
  Digits<Kind> digits_{};
};

/// What the values of an array turned out to need.
struct Needs {
  bool wide = false;
  bool powers = false;
  bool neither = false;  ///< would do: one value at a time is faster
};

/// Counts whole buffers from the first on, and returns how many values these are: fewer than could be where it finds that they
/// need another way. Raises `largest` to the largest finite magnitude.
template <class Kind, class Stored>
std::size_t count_in_columns(std::span<const Stored> values, Needs& needs, std::uint32_t& largest,
                             Counters& singles, std::array<std::uint64_t, FloatBins::bin_count>& bins) {
  ColumnCounter<Kind> counter(largest);
  const std::size_t count = std::min(values.size() / buffer_size * buffer_size, counter.countable);
  Buffer buffer;
  std::size_t done = 0;
  for (bool is_suitable = true; done < count && is_suitable;) {
    largest = std::max(largest, counter.count(widen(&values[done], buffer_size, buffer), singles));
    done += buffer_size;
    const bool for_octaves = counter.outside() > counter.corrected() / 2;
    const bool can_help = for_octaves ? !Kind::wide : !Kind::powers;
    is_suitable = counter.corrected() <= 32 + done / (can_help ? 256 : 16);
    if (is_suitable) continue;
    (can_help ? for_octaves ? needs.wide : needs.powers : needs.neither) = true;
  }
  counter.add_to(bins);
  return done;
}

}  // namespace

template <class Stored>
void FloatBins::add_stored(std::span<const Stored> values) {
  constexpr std::size_t many = 8 * buffer_size;
  Counters counters{};
  Buffer buffer;
  // Shifts by lane, which set the bits, are not among the operations of the oldest processors.
  Needs needs{.neither = active_vector_path() == VectorPath::portable};
  while (!values.empty()) {
    const std::size_t size = std::min(values.size(), buffer_size);
    std::uint32_t largest = count_singly(widen(values.data(), size, buffer), size, counters);
    values = values.subspan(size);
    if (values.size() >= many && !needs.neither) {
      const auto count =
          needs.wide
              ? (needs.powers ? count_in_columns<WidePowers, Stored> : count_in_columns<Wide, Stored>)
              : (needs.powers ? count_in_columns<NarrowPowers, Stored> : count_in_columns<Narrow, Stored>);
      values = values.subspan(count(values, needs, largest, counters, bins_));
    }
    largest_ = std::max(largest_, largest);
  }
  for (std::size_t bin = 0; bin < bin_count; ++bin) {
    const auto* of_lanes = &counters[bin * lanes];
    bins_[bin] += std::accumulate(of_lanes, of_lanes + lanes, std::uint64_t{0});
  }
}

template void FloatBins::add_stored(std::span<const float>);
template void FloatBins::add_stored(std::span<const std::uint16_t>);

}  // namespace fp16::detail
