#pragma once
/// How many values have which exponent, of binary64, too.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "fp16/code_histogram.h"
#include "fp16/exponent_histogram.h"

namespace halflab::hist {

/// Counts as of fp16::ExponentHistogram; what lies beyond the range of binary32 is counted in octaves of its own.
class Exponents {
 public:
  /// Values with 2^e <= |x| < 2^(e+1).
  struct Octave {
    std::uint64_t total = 0;
    std::uint64_t powers_of_two = 0;  ///< |x| = 2^e
  };

  void add(std::span<const float> values) { within_.add(values); }
  void add(std::span<const double> values);
  void add(const fp16::CodeHistogram& codes, const fp16::Format& format) { within_.add(codes, format); }
  Exponents& operator+=(const Exponents& other);

  Octave octave(int exponent) const;
  /// The lowest and the highest octave with a value; none when there is no non-zero finite value.
  std::optional<int> lowest_exponent() const;
  std::optional<int> highest_exponent() const;

  std::uint64_t zero() const { return within_.zero(); }
  std::uint64_t infinite() const { return within_.infinite(); }
  std::uint64_t nan() const { return within_.nan(); }
  std::uint64_t nonzero_finite() const;
  std::uint64_t total() const { return zero() + nonzero_finite() + infinite() + nan(); }
  /// Largest magnitude of the finite values; 0 when there is none.
  double max_abs() const { return std::max(largest_beyond_, within_.max_abs()); }

  /// Whether binary32 has all their octaves.
  bool are_within_binary32() const { return beyond_.empty(); }
  /// What lies beyond is counted as ordinary in the lowest octave, and as at the upper end of the highest one.
  fp16::ExponentHistogram in_binary32() const;

 private:
  fp16::ExponentHistogram within_;
  std::map<int, Octave> beyond_;
  double largest_beyond_ = 0;
};

}  // namespace halflab::hist
