#pragma once
/// What a scaled low-precision backward pass lost, against its twin: the same forward values, differentiated
/// in FP32.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/tape/tape.h"

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
  std::uint64_t nan = 0;        ///< of these
  std::uint64_t same_sign = 0;  ///< twin and run non-zero and of one sign
  double twin_square = 0;       ///< sum of twin^2
  double error_square = 0;      ///< sum of (run / S - twin)^2
  double flushed_square = 0;    ///< sum of twin^2 where flushed
  double run_square = 0;        ///< sum of (run / S)^2
  double product = 0;           ///< sum of twin * run / S
  double twin_max_abs = 0;
  bool is_rounding_noise = false;  ///< zero in exact arithmetic, as far as compare_sites() can tell

  std::uint64_t native_zero() const { return total - nonzero; }  ///< zero in the twin
  std::uint64_t infinite() const { return nonfinite - nan; }
  double fraction_flushed() const { return share(flushed); }
  double fraction_flushed_at_cast() const { return share(flushed_at_cast); }
  double fraction_subnormal() const { return share(subnormal); }
  double fraction_overflow() const { return share(overflow); }
  /// Share whose sign is the twin's; what was flushed has none.
  double sign_agreement() const { return share(same_sign); }
  double twin_norm() const;
  double run_norm() const;  ///< unscaled; not finite after an overflow
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

/// Sums in binary64: element i is added to partial sum i mod 8, in index order; these are then added in order.
/// `rounding` counts what was lost on the way into `run`.
TwinComparison compare(const Tensor& run, double scale, const Tensor& twin,
                       const fp16::RoundingCounts& rounding);

/// One comparison per site. `run` was counted (BackwardOptions::count_rounding).
///
/// Some gradients are 0 in exact arithmetic: of an attention's key bias, or of a bias before batch norm. What
/// a twin has there is rounding noise, and so is what the run has; their difference says nothing. Such a
/// tensor is told by the sum that it is. The gradient of a layer's bias sums up the gradients of the layer's
/// outputs: if these were unrelated, the norm of the sum would be about the norm of all of them; if they
/// cancel, what is left is what their roundings leave, of independent signs and up to u each, about u times
/// that norm (u the unit roundoff of the format that the run computes them in). The border is half way
/// between in octaves, sqrt(u): 2^-5.5 in binary16. In the networks here key biases lie at 0.6 u to 10 u and
/// every other bias at 1 or above. Only biases are such sums, and only where the layer's outputs are a site
/// and as many as its biases.
std::vector<TwinComparison> compare_sites(std::span<const GradientSite> sites, const SiteGradients& run,
                                          const SiteGradients& twin);

/// Over all tensors but those of rounding noise, of which no more is counted than what is not finite.
TwinComparison total_of(const std::vector<TwinComparison>& comparisons);

}  // namespace sim
