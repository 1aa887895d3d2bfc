#pragma once
/// What FP16 loses of a gradient at each scale of the loss: real scaled backward passes against their twins.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/training/training_setup.h"
#include "experiments/underflow_sweep/options.h"
#include "fp16/exponent_histogram.h"
#include "sim/statistics/twin_comparison.h"
#include "sim/trainer/trainer.h"

namespace experiments::underflow_sweep {

/// What all batches together showed at one scale.
struct ScaleResult {
  std::vector<sim::TwinComparison> sites;
  /// For each site the elements that are zero though S times the twin's would not round to it: something that
  /// they were computed from had been flushed.
  std::vector<std::uint64_t> lost_upstream;
  double relative_error = 0;  ///< mean over the batches; not finite when one overflowed
  double cosine = 0;          ///< likewise

  sim::TwinComparison total() const { return sim::total_of(sites); }
  double fraction_lost_upstream(std::size_t site) const;
  /// Over all sites but those of rounding noise.
  double fraction_lost_upstream() const;
  bool overflows() const { return total().nonfinite > 0; }
};

/// Indices of scales, by the mean relative error among those without overflow.
struct BestScales {
  std::size_t best;     ///< of the smallest error, the smaller one on a tie
  std::size_t lowest;   ///< from here
  std::size_t highest;  ///< to here, without a gap, the error is within 1 % of the smallest
};

struct Findings {
  std::vector<ScaleResult> results;  ///< at S = 2^0, 2^1, ...
  std::vector<sim::GradientSite> sites;
  fp16::ExponentHistogram twin_exponents;  ///< of the tensors that TwinComparison counts, at S = 1
  std::optional<BestScales> best_scales;   ///< none where every scale overflows or the twins are zero
  std::optional<int> recommended_scale_log2;
  sim::Evaluation evaluation;  ///< of the trained network
  std::string policy;
  bool is_fp16;  ///< whether tensors of the policy are

  /// Who flushes: "FP16", "policy bf16".
  std::string subject() const { return is_fp16 ? "FP16" : "policy " + policy; }
};

/// The elements that are zero in `run` though `scale` times the twin's would not round to zero in binary16.
std::uint64_t count_lost_upstream(const sim::Tensor& run, const sim::Tensor& twin, float scale);

/// Trains in FP32, then takes a few batches and measures each of them at every scale.
Findings measure(const TrainingSetup& setup, sim::Trainer& trainer, const Options& options, Run& run);

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict; `setting` is what was trained how, in a sentence.
void report(Run& run, const Findings& found, bool is_classifier, const std::string& setting);

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const Findings& found, const std::string& setting);

}  // namespace experiments::underflow_sweep
