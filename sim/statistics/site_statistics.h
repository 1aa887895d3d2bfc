#pragma once
/// What a backward pass left of a gradient, by itself: the statistics that need no twin.

#include <cstdint>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/exponent_histogram.h"
#include "sim/tape/tape.h"

namespace sim {

/// Statistics of one tensor's gradient in one step. Classes are those of the stored, scaled values.
struct SiteStatistics {
  fp16::ExponentHistogram exponents = {};  ///< of the stored values
  fp16::RoundingCounts rounding = {};      ///< what the rounding to this very tensor did
  double scale = 1;                        ///< what the stored values are a multiple of
  double square = 0;                       ///< sum of the squares of the stored values

  std::uint64_t total() const { return exponents.total(); }
  std::uint64_t zero() const { return exponents.zero(); }
  std::uint64_t infinite() const { return exponents.infinite(); }
  std::uint64_t nan() const { return exponents.nan(); }
  /// 0 < |stored| < 2^-14.
  std::uint64_t subnormal() const;
  /// L2 norm of the unscaled gradient; not finite where an element is not.
  double norm() const;
  /// log2 of the largest finite magnitude of the unscaled gradient over 2^-25, where rounding to FP16 reaches
  /// zero; minus infinity where nothing is finite and non-zero.
  double octaves_alive() const;
};

/// `rounding` counts what was lost on the way into `gradient`, `scale` times the true one. The square is the
/// sum of 16 partial sums in binary64, in order; element i is part of sum i mod 16.
SiteStatistics statistics_of(const Tensor& gradient, double scale, const fp16::RoundingCounts& rounding);

/// One per site. `run` was counted (BackwardOptions::count_rounding).
std::vector<SiteStatistics> site_statistics(const SiteGradients& run);

}  // namespace sim
