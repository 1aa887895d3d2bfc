#pragma once
/// The gradients of a few batches late in training, pooled and counted by binary exponent, and how they came
/// about.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/gradient_histogram/options.h"
#include "experiments/training/training_setup.h"
#include "fp16/exponent_histogram.h"
#include "sim/statistics/cast_counts.h"
#include "sim/tape/tape.h"
#include "sim/trainer/trainer.h"

namespace experiments::gradient_histogram {

/// The gradients of one tensor, or of several together.
struct Pooled {
  std::string name;
  fp16::ExponentHistogram exponents = {};
  sim::CastCounts cast_at_scale_1 = {};
  double square = 0;  ///< sum of g^2, in the order of the values
  std::array<double, fp16::ExponentHistogram::max_exponent - fp16::ExponentHistogram::min_exponent + 1>
      octave_squares = {};    ///< the same of each octave's, from the lowest on
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
  /// The octave in per cent of all values.
  double percent_at(int exponent) const;
  /// The sum of g^2 in the octave, in the order of the values.
  double square_at(int exponent) const;
  /// The fullest octave in per cent of all values.
  double peak_percent() const;
};

struct PooledSite : Pooled {
  sim::GradientSite::Kind kind = sim::GradientSite::Kind::weight;
  bool is_rounding_noise = true;  ///< in every batch, as sim::compare_sites() tells it
};

/// The gradients of one batch at one moment of training.
struct Moment {
  std::size_t step = 0;  ///< updates before it
  double loss = 0;       ///< of the batch
  Pooled activation_gradients = {}, weight_gradients = {};
};

/// All that the run found.
struct Findings {
  std::vector<PooledSite> sites;
  Pooled activation_gradients = {}, weight_gradients = {}, all_gradients = {};  ///< sums over the sites
  /// The gradients of the outputs of every operation together, sites or not, by its name.
  std::vector<Pooled> operations;
  Pooled weights = {}, updates = {};  ///< the values of all parameters, and what one step changes in them
  std::vector<Moment> moments;
  std::optional<int> recommended_scale_log2;  ///< of all gradients; none without a finite non-zero one
  sim::Evaluation evaluation = {};            ///< of the trained network

  /// Whether the histogram predicts what the cast at S = 1 does to the values.
  bool prediction_is_exact() const;
};

/// Trains in FP32, looking at some moments on the way, and pools the gradients of the last batches.
Findings measure(const TrainingSetup& setup, sim::Trainer& trainer, const Options& options, Run& run);

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict; `setting` is what was trained how, in a sentence.
void report(Run& run, const Findings& found, const TrainingSetup& setup, const Options& options,
            const std::string& setting);

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const Findings& found, std::string_view model, const std::string& setting);

}  // namespace experiments::gradient_histogram
