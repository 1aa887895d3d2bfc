#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "code_histogram.h"
#include "formats.h"

namespace fp16 {

/// Counts values by binary exponent, so that what a cast to binary16 does to them at EVERY power-of-two scale
/// follows from one pass: multiplying by 2^m moves whole octaves by m.
///
/// The cast rounds the exact product with S = 2^m to nearest even, so that x becomes
///   zero                 when |S x| <= 2^-25                             (flushed)
///   non-zero subnormal   when 2^-25 < |S x| < (2 - 2^-10) 2^-15
///   infinite             when |S x| >= (2 - 2^-11) 2^15 = 65520          (overflowed)
/// Each octave therefore counts apart the exact powers of two and the values above either of the two edges
/// near its upper end, which makes every prediction exact. Counts do not depend on the order of the values or
/// on how they were split.
class ExponentHistogram {
 public:
  /// Exponents of the smallest subnormal and of the largest finite binary32 value.
  static constexpr int min_exponent = -149;
  static constexpr int max_exponent = 127;

  /// Values with 2^e <= |x| < 2^(e+1).
  struct Octave {
    std::uint64_t total = 0;
    std::uint64_t powers_of_two = 0;  ///< |x| = 2^e
    std::uint64_t near_next = 0;      ///< |x| >= (2 - 2^-10) 2^e; includes `top`
    std::uint64_t top = 0;            ///< |x| >= (2 - 2^-11) 2^e

    bool operator==(const Octave&) const = default;
  };

  ExponentHistogram() = default;

  /// What is beside the octaves, as zero(), infinite(), nan() and max_abs() tell it.
  struct Rest {
    std::uint64_t zero = 0;
    std::uint64_t infinite = 0;
    std::uint64_t nan = 0;
    double max_abs = 0;
  };
  /// Counts that were kept, the first octave's exponent being `lowest`. Throws std::invalid_argument where an octave
  /// lies outside of min_exponent .. max_exponent.
  ExponentHistogram(int lowest, std::span<const Octave> octaves, const Rest& rest);

  void add(std::span<const float> values);
  /// binary16 codes; counts what they would count widened to float.
  void add(std::span<const std::uint16_t> codes);
  /// Non-zero magnitudes below 2^min_exponent count as ordinary values of the lowest octave, finite ones from
  /// 2^(max_exponent + 1) as `top` of the highest: predictions stay exact for -112 <= log2_scale <= 123.
  void add(std::span<const double> values);
  /// What adding each code as often as it was counted gives; throws std::invalid_argument unless `format` is
  /// binary16 or bfloat16.
  void add(const CodeHistogram& codes, const Format& format);

  ExponentHistogram& operator+=(const ExponentHistogram& other);
  bool operator==(const ExponentHistogram&) const = default;

  /// min_exponent <= exponent <= max_exponent.
  const Octave& octave(int exponent) const;

  std::uint64_t zero() const { return zero_; }
  std::uint64_t infinite() const { return infinite_; }
  std::uint64_t nan() const { return nan_; }
  std::uint64_t nonzero_finite() const;
  std::uint64_t total() const { return zero_ + nonzero_finite() + infinite_ + nan_; }

  /// Largest magnitude of the finite values; 0 when there is none.
  double max_abs() const { return max_abs_; }
  /// The lowest and the highest octave with a value; none when there is no non-zero finite value.
  std::optional<int> lowest_exponent() const;
  std::optional<int> highest_exponent() const;

  /// Non-zero finite values that the cast at scale 2^log2_scale turns into zero, a non-zero subnormal, an
  /// infinity.
  std::uint64_t flushed_at_scale(int log2_scale) const;
  std::uint64_t subnormal_at_scale(int log2_scale) const;
  std::uint64_t overflowed_at_scale(int log2_scale) const;

  /// floor(log2(65504 / max_abs)): the largest m for which 2^m keeps every finite value within binary16's
  /// finite range. None when no finite value is non-zero.
  std::optional<int> log2_headroom() const;

 private:
  void count(double value, std::uint64_t times);
  template <class Stored>
  void add_stored(std::span<const Stored> values);
  template <class Stored>
  void add_binned(std::span<const Stored> values);

  std::array<Octave, max_exponent - min_exponent + 1> octaves_{};
  std::uint64_t zero_ = 0;
  std::uint64_t infinite_ = 0;
  std::uint64_t nan_ = 0;
  double max_abs_ = 0;
};

/// The counts of the values times 2^log2. What leaves the octaves counts as values beyond binary32 do in add().
ExponentHistogram scaled(const ExponentHistogram& exponents, int log2);

}  // namespace fp16
