#pragma once
/// What a scaled low-precision backward pass lost, against its twin: the same forward values, differentiated
/// in FP32.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/tape.h"

namespace sim {

/// Sums over one or more tensors; comparisons add. Shares are over `nonzero`, the elements that are non-zero
/// in the twin.
struct TwinComparison {
  std::uint64_t total = 0;
  std::uint64_t nonzero = 0;
  std::uint64_t flushed = 0;          ///< twin non-zero, run zero
  std::uint64_t flushed_at_cast = 0;  ///< non-zero until the rounding to this very tensor
  std::uint64_t subnormal = 0;        ///< 0 < |run| < 2^-14
  std::uint64_t overflow = 0;         ///< run infinite or NaN
  std::uint64_t nonfinite = 0;  ///< the same over all elements: NaN arises where infinity meets an exact zero
  double twin_square = 0;       ///< sum of twin^2
  double error_square = 0;      ///< sum of (run / S - twin)^2
  double flushed_square = 0;    ///< sum of twin^2 where flushed
  double run_square = 0;        ///< sum of (run / S)^2
  double product = 0;           ///< sum of twin * run / S
  double twin_max_abs = 0;

  double fraction_flushed() const { return share(flushed); }
  double fraction_flushed_at_cast() const { return share(flushed_at_cast); }
  double fraction_subnormal() const { return share(subnormal); }
  double fraction_overflow() const { return share(overflow); }
  /// ||run / S - twin|| / ||twin||; 0 for an all-zero twin; not finite after an overflow.
  double relative_error() const;
  /// Share of ||twin|| that sat in the flushed elements.
  double norm_share_flushed() const;
  /// Cosine of the angle between run and twin; 0 where either is zero.
  double cosine() const;
  /// log2 of the largest twin magnitude over 2^-25, where rounding to FP16 reaches zero: at 0 or below the
  /// whole tensor is lost at S = 1. Minus infinity for an all-zero twin.
  double octaves_alive() const;

  TwinComparison& operator+=(const TwinComparison& other);

 private:
  double share(std::uint64_t count) const {
    return nonzero == 0 ? 0 : static_cast<double>(count) / static_cast<double>(nonzero);
  }
};

/// Element by element in index order; sums in binary64. `rounding` counts what was lost on the way into
/// `run`.
TwinComparison compare(const Tensor& run, double scale, const Tensor& twin,
                       const fp16::RoundingCounts& rounding);

/// One comparison per site. `run` was counted (BackwardOptions::count_rounding).
std::vector<TwinComparison> compare_sites(const SiteGradients& run, const SiteGradients& twin);

TwinComparison total_of(const std::vector<TwinComparison>& comparisons);

}  // namespace sim
