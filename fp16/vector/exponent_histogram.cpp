#include "fp16/exponent_histogram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "fp16/bits.h"
#include "fp16/codec.h"
#include "fp16/vector/environment.h"
#include "fp16/vector/float_bins.h"

namespace fp16 {
namespace {

double value_of(float value) {
  return value;
}
double value_of(std::uint16_t code) {
  return half_bits_to_float(code);
}

bool is_subnormal_float(float value) {
  return is_subnormal<binary32>(std::bit_cast<std::uint32_t>(value));
}
bool is_subnormal_float(std::uint16_t) {
  return false;  // those of binary16 are normal in binary32
}

}  // namespace

ExponentHistogram::ExponentHistogram(int lowest, std::span<const Octave> octaves, const Rest& rest)
    : zero_(rest.zero), infinite_(rest.infinite), nan_(rest.nan), max_abs_(rest.max_abs) {
  const std::ptrdiff_t first = lowest - min_exponent;
  if (first < 0 || first + std::ssize(octaves) > std::ssize(octaves_))
    throw std::invalid_argument("exponent histogram: octaves from 2^" + std::to_string(lowest) +
                                " on lie outside of 2^-149 to 2^127");
  std::ranges::copy(octaves, octaves_.begin() + first);
}

void ExponentHistogram::count(double value, std::uint64_t times) {
  const double magnitude = std::fabs(value);
  if (!std::isfinite(value)) {
    (std::isnan(value) ? nan_ : infinite_) += times;
    return;
  }
  if (magnitude == 0) {
    zero_ += times;
    return;
  }
  max_abs_ = std::max(max_abs_, magnitude);
  const double within = magnitude < 0x1p-149   ? 0x1.8p-149   // ordinary
                        : magnitude >= 0x1p128 ? 0x1.ffep127  // top
                                               : magnitude;
  const auto bits = std::bit_cast<std::uint64_t>(within);
  const int exponent = static_cast<int>(bits >> binary64.trailing_bits()) - binary64.bias();
  const auto& begins = detail::class_begins<binary64>;
  const std::uint64_t fraction = bits & trailing_mask<binary64>;
  Octave& octave = octaves_[static_cast<std::size_t>(exponent - min_exponent)];
  octave.total += times;
  octave.powers_of_two += fraction < begins[1] ? times : 0;
  octave.near_next += fraction >= begins[2] ? times : 0;
  octave.top += fraction >= begins[3] ? times : 0;
}

template <class Stored>
void ExponentHistogram::add_stored(std::span<const Stored> values) {
  constexpr std::size_t few = 512;                          // less work than emptying the bins
  constexpr std::size_t chunk_size = std::size_t{1} << 30;  // no counter of a bin can wrap
  for (; values.size() > few; values = values.subspan(std::min(values.size(), chunk_size)))
    add_binned(values.first(std::min(values.size(), chunk_size)));
  for (const Stored value : values) count(value_of(value), 1);
}

template <class Stored>
void ExponentHistogram::add_binned(std::span<const Stored> values) {
  detail::FloatBins bins;
  bins.add(values);
  max_abs_ = std::max(max_abs_, value_of(std::bit_cast<float>(bins.largest())));
  bool found_subnormal = false;
  for (std::size_t bin = 0; bin < bins.bin_count; ++bin) {
    if (bins[bin] == 0) continue;
    const std::uint32_t smallest = bins.smallest_magnitude_in(bin);
    if (is_subnormal<binary32>(smallest)) {
      found_subnormal = true;  // of many octaves
    } else {
      count(value_of(std::bit_cast<float>(smallest)), bins[bin]);
    }
  }
  if (!found_subnormal) return;
  for (const Stored value : values) {
    if (is_subnormal_float(value)) count(value_of(value), 1);
  }
}

// Under denormals-are-zero a subnormal would compare equal to zero.
void ExponentHistogram::add(std::span<const float> values) {
  detail::in_default_environment([&] { add_stored(values); });
}
void ExponentHistogram::add(std::span<const std::uint16_t> codes) {
  detail::in_default_environment([&] { add_stored(codes); });
}
void ExponentHistogram::add(std::span<const double> values) {
  detail::in_default_environment([&] {
    for (const double value : values) count(value, 1);
  });
}

void ExponentHistogram::add(const CodeHistogram& codes, const Format& format) {
  if (format != binary16 && format != bfloat16) {
    throw std::invalid_argument("format: " + std::string(name_of(format)) +
                                " is not allowed; allowed: binary16, bfloat16");
  }
  detail::in_default_environment([&] {
    for (std::uint32_t bits = 0; bits < CodeHistogram::code_count; ++bits) {
      const auto code = static_cast<std::uint16_t>(bits);
      const std::uint64_t times = codes.count(code);
      if (times > 0) count(format == binary16 ? decode<binary16>(code) : decode<bfloat16>(code), times);
    }
  });
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
  const auto occupied =
      std::find_if(octaves_.rbegin(), octaves_.rend(), [](const Octave& octave) { return octave.total > 0; });
  if (occupied == octaves_.rend()) return std::nullopt;
  return max_exponent - static_cast<int>(occupied - octaves_.rbegin());
}

namespace {

/// Beyond these scales every value is lost in the same way.
int within_reach(int log2_scale) {
  return std::clamp(log2_scale, -1000, 1000);
}

}  // namespace

std::uint64_t ExponentHistogram::flushed_at_scale(int log2_scale) const {
  std::uint64_t count = 0;
  for (int exponent = min_exponent; exponent <= max_exponent; ++exponent) {
    const int scaled = exponent + within_reach(log2_scale);
    if (scaled < -25) count += octave(exponent).total;
    if (scaled == -25) count += octave(exponent).powers_of_two;
  }
  return count;
}

std::uint64_t ExponentHistogram::subnormal_at_scale(int log2_scale) const {
  std::uint64_t count = 0;
  for (int exponent = min_exponent; exponent <= max_exponent; ++exponent) {
    const int scaled = exponent + within_reach(log2_scale);
    if (scaled >= -25 && scaled <= -15) count += octave(exponent).total;
    if (scaled == -25) count -= octave(exponent).powers_of_two;
    if (scaled == -15) count -= octave(exponent).near_next;
  }
  return count;
}

std::uint64_t ExponentHistogram::overflowed_at_scale(int log2_scale) const {
  std::uint64_t count = 0;
  for (int exponent = min_exponent; exponent <= max_exponent; ++exponent) {
    const int scaled = exponent + within_reach(log2_scale);
    if (scaled > 15) count += octave(exponent).total;
    if (scaled == 15) count += octave(exponent).top;
  }
  return count;
}

std::optional<int> ExponentHistogram::log2_headroom() const {
  if (max_abs_ == 0) return std::nullopt;
  int exponent = 0;
  const double significand = std::frexp(max_abs_, &exponent);  // in [1/2, 1); 65504 = (65504/65536) 2^16
  return 16 - exponent - (significand > 65504.0 / 65536.0 ? 1 : 0);
}

ExponentHistogram scaled(const ExponentHistogram& exponents, int log2) {
  using Octave = ExponentHistogram::Octave;
  constexpr int first = ExponentHistogram::min_exponent, last = ExponentHistogram::max_exponent;
  std::array<Octave, last - first + 1> octaves{};
  for (int e = first; e <= last; ++e) {
    const Octave& from = exponents.octave(e);
    const int moved = e + log2;
    Octave& to = octaves[static_cast<std::size_t>(std::clamp(moved, first, last) - first)];
    to.total += from.total;
    if (moved < first) continue;
    const bool is_beyond = moved > last;
    to.powers_of_two += is_beyond ? 0 : from.powers_of_two;
    to.near_next += is_beyond ? from.total : from.near_next;
    to.top += is_beyond ? from.total : from.top;
  }
  return {first,
          octaves,
          {.zero = exponents.zero(),
           .infinite = exponents.infinite(),
           .nan = exponents.nan(),
           .max_abs = std::ldexp(exponents.max_abs(), log2)}};
}

}  // namespace fp16
