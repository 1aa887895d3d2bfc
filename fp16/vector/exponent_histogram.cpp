#include "fp16/exponent_histogram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <type_traits>

#include "fp16/bits.h"
#include "fp16/codec.h"
#include "fp16/vector/environment.h"

namespace fp16 {
namespace {

double value_of(float value) {
  return value;
}
double value_of(std::uint16_t code) {
  return half_bits_to_float(code);
}

// Trailing significands at which the classes of an octave begin: the power of two, what lies above it,
// near_next, top. The last is out of reach where 2 - 2^-11 has more digits than the format.
template <const Format& F>
constexpr std::array<Bits<F>, 4> class_begins = [] {
  constexpr Bits<F> end = trailing_mask<F> + 1;
  return std::array<Bits<F>, 4>{0, 1, end - (end >> 10), end - (end >> 11)};
}();

// A bin is 4 * biased exponent + class. Subnormals of many octaves share one biased exponent: binary16's get
// a bin each, before the others, binary32's are found by a pass of their own.
using Bin = std::uint16_t;

template <const Format& F>
constexpr bool has_subnormal_bins = F == binary16;

template <const Format& F>
constexpr Bits<F> first_bin = has_subnormal_bins<F> ? min_normal_bits<F> - 4 : 0;

template <const Format& F>
constexpr Bin bin_of(Bits<F> magnitude) {
  Bits<F> bin = first_bin<F> + (magnitude >> F.trailing_bits());
  for (const Bits<F> begin : {class_begins<F>[1], class_begins<F>[2], class_begins<F>[3]}) {
    // One more than the biased exponent, by a carry, from `begin` on.
    const Bits<F> carried = magnitude + (trailing_mask<F> + 1 - begin);
    bin += carried >> F.trailing_bits();
  }
  return has_subnormal_bins<F> && magnitude < min_normal_bits<F> ? magnitude : bin;
}

template <const Format& F>
constexpr Bits<F> smallest_magnitude_in(Bin bin) {
  if (has_subnormal_bins<F> && bin < min_normal_bits<F>) return bin;
  const Bits<F> normal = bin - first_bin<F>;
  return (normal / 4 << F.trailing_bits()) + class_begins<F>[normal % 4];
}

template <const Format& F>
constexpr std::size_t bin_count = bin_of<F>(sign_mask<F> - 1) + 1;

// An increment waits for the one before it at the same address, and neighbours often share a bin (a
// gradient's zeros): each of `lanes` neighbours has a counter of its own. A bin's counters lie side by side,
// because between tables a page apart the processor mistakes loads for dependent on earlier stores.
constexpr unsigned lanes = 8;
template <const Format& F>
using Counters = std::array<std::uint32_t, lanes * bin_count<F>>;

// Finds each value's counter and returns the bits of the largest finite magnitude. A loop of its own, because
// it vectorises and the increments cannot.
template <const Format& F, class Stored>
FP16_VECTOR_CLONES Bits<F> find_counters(const Stored* values, unsigned count, Bin* counters) {
  using SignedBits = std::make_signed_t<Bits<F>>;
  // Raised by this much, the bits of infinities and NaNs are negative.
  constexpr Bits<F> raise = min_normal_bits<F>;
  auto largest = static_cast<SignedBits>(raise);
  for (unsigned i = 0; i < count; ++i) {
    const Bits<F> magnitude = fp16::magnitude<F>(std::bit_cast<Bits<F>>(values[i]));
    counters[i] = bin_of<F>(magnitude) * lanes;
    const auto raised = static_cast<SignedBits>(magnitude + raise);
    largest = raised > largest ? raised : largest;
  }
  return static_cast<Bits<F>>(largest) - raise;
}

template <const Format& F, class Stored>
Bits<F> count_into(Counters<F>& counters, std::span<const Stored> values) {
  constexpr std::size_t block_size = 512;
  std::array<Bin, block_size> found;
  Bits<F> largest = 0;
  for (std::size_t start = 0; start < values.size(); start += block_size) {
    const std::size_t size = std::min(block_size, values.size() - start);
    largest = std::max(largest, find_counters<F>(&values[start], static_cast<unsigned>(size), found.data()));
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) ++counters[found[i + lane] + lane];
    }
    for (; i < size; ++i) ++counters[found[i]];
  }
  return largest;
}

}  // namespace

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
  const auto& begins = class_begins<binary64>;
  const std::uint64_t fraction = bits & trailing_mask<binary64>;
  Octave& octave = octaves_[static_cast<std::size_t>(exponent - min_exponent)];
  octave.total += times;
  octave.powers_of_two += fraction < begins[1] ? times : 0;
  octave.near_next += fraction >= begins[2] ? times : 0;
  octave.top += fraction >= begins[3] ? times : 0;
}

template <const Format& F, class Stored>
void ExponentHistogram::add_stored(std::span<const Stored> values) {
  constexpr std::size_t few = 512;                          // less work than emptying the counters
  constexpr std::size_t chunk_size = std::size_t{1} << 30;  // no 32-bit counter can wrap
  if (values.size() <= few) {
    for (const Stored value : values) count(value_of(value), 1);
    return;
  }
  const std::span<const Stored> chunk = values.first(std::min(values.size(), chunk_size));
  Counters<F> counters{};
  const Bits<F> largest = count_into<F>(counters, chunk);
  max_abs_ = std::max(max_abs_, value_of(std::bit_cast<Stored>(largest)));

  bool found_subnormal = false;
  for (std::size_t bin = 0; bin < bin_count<F>; ++bin) {
    const auto* of_lanes = &counters[bin * lanes];
    const std::uint64_t times = std::accumulate(of_lanes, of_lanes + lanes, std::uint64_t{0});
    if (times == 0) continue;
    const Bits<F> smallest = smallest_magnitude_in<F>(static_cast<Bin>(bin));
    if (!has_subnormal_bins<F> && is_subnormal<F>(smallest)) {
      found_subnormal = true;
    } else {
      count(value_of(std::bit_cast<Stored>(smallest)), times);
    }
  }
  if (found_subnormal) {
    for (const Stored value : chunk) {
      if (is_subnormal<F>(std::bit_cast<Bits<F>>(value))) count(value_of(value), 1);
    }
  }
  add_stored<F>(values.subspan(chunk.size()));
}

// Under denormals-are-zero a subnormal would compare equal to zero.
void ExponentHistogram::add(std::span<const float> values) {
  detail::in_default_environment([&] { add_stored<binary32>(values); });
}
void ExponentHistogram::add(std::span<const std::uint16_t> codes) {
  detail::in_default_environment([&] { add_stored<binary16>(codes); });
}
void ExponentHistogram::add(std::span<const double> values) {
  detail::in_default_environment([&] {
    for (const double value : values) count(value, 1);
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
  const double significand = std::frexp(max_abs_, &exponent);  // in [1/2, 1); 65504 = (65504/65536) 2^16
  return 16 - exponent - (significand > 65504.0 / 65536.0 ? 1 : 0);
}

}  // namespace fp16
