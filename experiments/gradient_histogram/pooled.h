#pragma once
/// The gradients of a few batches late in training, pooled and counted by binary exponent.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/common/progress.h"
#include "experiments/common/training_setup.h"
#include "sim/statistics/cast_counts.h"
#include "sim/statistics/exponent_histogram.h"
#include "sim/tape.h"
#include "sim/trainer.h"

namespace experiments::gradient_histogram {

struct Options {
  TrainingOptions training{.model = "mlp", .steps = 600};
  int pool = 4;
};

/// Of one tensor, or of several together.
struct Pooled {
  std::string name;
  sim::ExponentHistogram exponents = {};
  sim::CastCounts cast_at_scale_1 = {};
  double square = 0;          ///< sum of g^2, in the order of the values
  double flushed_square = 0;  ///< the same where |g| <= 2^-25

  void add(std::span<const float> gradients);
  Pooled& operator+=(const Pooled& other);

  double share_of_nonzero(std::uint64_t count) const;
  double fraction_zero() const;
  double fraction_below_smallest_subnormal() const;
  double fraction_flushed(int scale_log2) const;
  double fraction_subnormal_at_scale_1() const { return share_of_nonzero(cast_at_scale_1.subnormal); }
  double fraction_overflow(int scale_log2) const;
  double norm_share_flushed() const;
  double max_abs_log2() const;
  /// Octaves between the largest gradient and 2^-25, where nearest-even reaches zero; minus infinity without a
  /// finite non-zero one.
  double octaves_alive() const { return max_abs_log2() + 25; }
  /// The fullest octave in per cent of all values.
  double peak_percent() const;
};

struct PooledSite : Pooled {
  sim::GradientSite::Kind kind = sim::GradientSite::Kind::weight;
  bool is_rounding_noise = true;  ///< in every batch, as sim::compare_sites() tells it
};

/// All that the run found; the sums are over its sites.
struct Findings {
  std::vector<PooledSite> sites;
  Pooled activations, weights, all;
  std::optional<int> recommended_scale_log2;  ///< none without a finite non-zero gradient
  sim::Evaluation evaluation;                 ///< of the trained network

  /// Whether the histogram predicts what the cast at S = 1 does to the values.
  bool prediction_is_exact() const;
};

/// Trains in FP32 and pools the gradients of the last batches, site by site.
Findings pool_gradients(const TrainingSetup& setup, sim::Trainer& trainer, const Options& options,
                        Progress& progress);

}  // namespace experiments::gradient_histogram
