#pragma once
/// What a cast to a format does to values whose exponents are counted.

#include <cstdint>
#include <optional>

#include "fp16/format.h"
#include "tools/halflab/hist/exponents.h"
#include "tools/halflab/square_sum.h"

namespace halflab::hist {

/// Of non-zero finite values, at one scale.
struct CastCounts {
  std::uint64_t flushed = 0;     ///< become zero
  std::uint64_t subnormal = 0;   ///< become a subnormal number
  std::uint64_t overflowed = 0;  ///< beyond the largest finite number

  CastCounts& operator+=(const CastCounts& other);
};

/// The exponents of values, and the cast to nearest even that is asked about. Scales are powers of two of the values as
/// they were before the files' own scale.
class CastForecast {
 public:
  CastForecast(const Exponents& exponents, const fp16::Format& format, int scaled_by_log2)
      : exponents_(exponents), format_(format), scaled_by_log2_(scaled_by_log2) {}

  /// Exact: what becomes zero is at most half the smallest subnormal, a power of two.
  std::uint64_t flushed(int scale_log2) const;
  double flushed_share(int scale_log2) const;
  /// The most of the norm that the flushed values can be: each counts as the upper end of its octave. `squares` are
  /// those of all finite values as the files hold them.
  double norm_lost_at_most(int scale_log2, const SquareSum& squares) const;

  /// The largest scale at which none overflows; none where all are zero.
  std::optional<int> headroom_log2() const;
  /// The smallest scale at which, of all non-zero values, at most 0.1 % more become zero than at headroom_log2().
  std::optional<int> plateau_lowest_log2() const;
  /// Octaves of the largest value above what becomes zero at S = 1.
  std::optional<double> octaves_alive() const;

 private:
  /// Values up to 2^this become zero.
  int last_flushed_log2(int scale_log2) const {
    return format_.emin_subnormal() - 1 - scale_log2 + scaled_by_log2_;
  }

  /// Calls visit(exponent, octave, how many of it) for what becomes zero.
  template <class Visit>
  void for_each_flushed(int scale_log2, Visit&& visit) const;

  const Exponents& exponents_;
  const fp16::Format& format_;
  int scaled_by_log2_;
};

/// All three counts; exact from the exponents alone for binary16, and of values within binary32.
CastCounts forecast_binary16(const fp16::ExponentHistogram& exponents, int stored_scale_log2);

}  // namespace halflab::hist
