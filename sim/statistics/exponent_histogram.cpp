#include "sim/statistics/exponent_histogram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace sim {
namespace {

// binary32 as an integer without its sign: biased exponent in bits 23..30, fraction in bits 0..22.
constexpr std::int32_t fraction_mask = 0x007FFFFF;
constexpr std::int32_t infinity_bits = 0x7F800000;
constexpr std::int32_t near_next_fraction = 0x7FE000;  // 1 + fraction/2^23 = 2 - 2^-10
constexpr std::int32_t top_fraction = 0x7FF000;        // 2 - 2^-11
constexpr int exponent_bias = 127;

constexpr int classes = 4;  // power of two, ordinary, near_next below top, top
constexpr std::size_t table_size = 256 * classes;
using Table = std::array<std::uint32_t, table_size>;

// Neighbouring values often fall into one bin; a table for each of four neighbours keeps the increments
// independent.
constexpr std::size_t table_count = 4;
using Tables = std::array<Table, table_count>;

constexpr std::size_t block_size = 1024;
constexpr std::size_t chunk_size = std::size_t{1} << 30;  // no 32-bit counter can wrap within one chunk

std::int32_t magnitude_bits(float value) {
  return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF);
}

std::uint32_t bin_of(std::int32_t magnitude) {
  const std::int32_t fraction = magnitude & fraction_mask;
  return static_cast<std::uint32_t>((magnitude >> 23) * classes + (fraction > 0) +
                                    (fraction >= near_next_fraction) + (fraction >= top_fraction));
}

std::int32_t largest_finite(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float value : values) {
    const std::int32_t magnitude = magnitude_bits(value);
    largest = std::max(largest, magnitude < infinity_bits ? magnitude : 0);
  }
  return largest;
}

// Adds one block to the tables and returns the bits of its largest finite magnitude. Bins are computed in a
// loop of their own because that loop vectorises and the increments cannot.
std::int32_t count_block(std::span<const float> values, Tables& tables) {
  std::array<std::uint32_t, block_size> bins;
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int32_t magnitude = magnitude_bits(values[i]);
    bins[i] = bin_of(magnitude);
    largest = std::max(largest, magnitude);
  }
  std::size_t i = 0;
  for (; i + table_count <= values.size(); i += table_count) {
    for (std::size_t k = 0; k < table_count; ++k) ++tables[k][bins[i + k]];
  }
  for (; i < values.size(); ++i) ++tables[0][bins[i]];
  return largest < infinity_bits ? largest : largest_finite(values);
}

}  // namespace

void ExponentHistogram::add(std::span<const float> values) {
  while (!values.empty()) {
    const std::span<const float> chunk = values.first(std::min(values.size(), chunk_size));
    values = values.subspan(chunk.size());

    Tables tables{};
    std::int32_t largest = 0;
    for (std::size_t start = 0; start < chunk.size(); start += block_size) {
      const std::size_t size = std::min(block_size, chunk.size() - start);
      largest = std::max(largest, count_block(chunk.subspan(start, size), tables));
    }
    max_abs_ = std::max(max_abs_, std::bit_cast<float>(largest));

    const auto counted = [&tables](std::size_t bin) {
      std::uint64_t count = 0;
      for (const Table& table : tables) count += table[bin];
      return count;
    };
    zero_ += counted(0);
    if (counted(1) + counted(2) + counted(3) > 0) add_subnormals(chunk);
    for (int biased = 1; biased <= 2 * exponent_bias; ++biased) {
      Octave& octave = octaves_[static_cast<std::size_t>(biased - exponent_bias - min_exponent)];
      const std::size_t bin = static_cast<std::size_t>(biased * classes);
      const std::uint64_t top = counted(bin + 3);
      const std::uint64_t near_next = counted(bin + 2) + top;
      octave.total += counted(bin) + counted(bin + 1) + near_next;
      octave.powers_of_two += counted(bin);
      octave.near_next += near_next;
      octave.top += top;
    }
    infinite_ += counted(table_size - 4);
    nan_ += counted(table_size - 3) + counted(table_size - 2) + counted(table_size - 1);
  }
}

// Subnormals have no implicit bit, so their exponent is the position of the leading one. They are rare enough
// for a pass of their own.
void ExponentHistogram::add_subnormals(std::span<const float> values) {
  for (const float value : values) {
    const auto significand = static_cast<std::uint64_t>(magnitude_bits(value));
    if (significand == 0 || significand > fraction_mask) continue;
    const int leading = std::bit_width(significand) - 1;
    Octave& octave = octaves_[static_cast<std::size_t>(leading)];
    octave.total += 1;
    octave.powers_of_two += std::has_single_bit(significand);
    octave.near_next += (significand << 10) >= (std::uint64_t{0x7FF} << leading);
    octave.top += (significand << 11) >= (std::uint64_t{0xFFF} << leading);
  }
}

ExponentHistogram& ExponentHistogram::operator+=(const ExponentHistogram& other) {
  for (std::size_t i = 0; i < octaves_.size(); ++i) {
    octaves_[i].total += other.octaves_[i].total;
    octaves_[i].powers_of_two += other.octaves_[i].powers_of_two;
    octaves_[i].near_next += other.octaves_[i].near_next;
    octaves_[i].top += other.octaves_[i].top;
  }
  zero_ += other.zero_;
  infinite_ += other.infinite_;
  nan_ += other.nan_;
  max_abs_ = std::max(max_abs_, other.max_abs_);
  return *this;
}

const ExponentHistogram::Octave& ExponentHistogram::octave(int exponent) const {
  assert(exponent >= min_exponent && exponent <= max_exponent);
  return octaves_[static_cast<std::size_t>(exponent - min_exponent)];
}

std::uint64_t ExponentHistogram::nonzero_finite() const {
  std::uint64_t count = 0;
  for (const Octave& octave : octaves_) count += octave.total;
  return count;
}

std::optional<int> ExponentHistogram::lowest_exponent() const {
  const auto occupied = std::ranges::find_if(octaves_, [](const Octave& octave) { return octave.total > 0; });
  if (occupied == octaves_.end()) return std::nullopt;
  return min_exponent + static_cast<int>(occupied - octaves_.begin());
}

std::optional<int> ExponentHistogram::highest_exponent() const {
  if (max_abs_ == 0) return std::nullopt;
  return std::ilogb(max_abs_);
}

std::uint64_t ExponentHistogram::flushed_at_scale(int log2_scale) const {
  std::uint64_t count = 0;
  for (int exponent = min_exponent; exponent <= max_exponent; ++exponent) {
    const int scaled = exponent + log2_scale;
    if (scaled < -25) count += octave(exponent).total;
    if (scaled == -25) count += octave(exponent).powers_of_two;
  }
  return count;
}

std::uint64_t ExponentHistogram::subnormal_at_scale(int log2_scale) const {
  std::uint64_t count = 0;
  for (int exponent = min_exponent; exponent <= max_exponent; ++exponent) {
    const int scaled = exponent + log2_scale;
    if (scaled >= -25 && scaled <= -15) count += octave(exponent).total;
    if (scaled == -25) count -= octave(exponent).powers_of_two;
    if (scaled == -15) count -= octave(exponent).near_next;
  }
  return count;
}

std::uint64_t ExponentHistogram::overflowed_at_scale(int log2_scale) const {
  std::uint64_t count = 0;
  for (int exponent = min_exponent; exponent <= max_exponent; ++exponent) {
    const int scaled = exponent + log2_scale;
    if (scaled > 15) count += octave(exponent).total;
    if (scaled == 15) count += octave(exponent).top;
  }
  return count;
}

std::optional<int> ExponentHistogram::log2_headroom() const {
  if (max_abs_ == 0) return std::nullopt;
  int exponent = 0;
  const float significand = std::frexp(max_abs_, &exponent);  // in [1/2, 1); 65504 = (65504/65536) 2^16
  return 16 - exponent - (significand > 65504.0f / 65536.0f ? 1 : 0);
}

}  // namespace sim
