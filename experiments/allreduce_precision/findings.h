#pragma once
/// What all-reduces lose of the mean gradient, against the exact mean of what the workers hold.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/allreduce_precision/gradients.h"
#include "experiments/allreduce_precision/options.h"
#include "experiments/frame/experiment.h"
#include "experiments/training/training_setup.h"
#include "sim/statistics/twin_comparison.h"
#include "sim/trainer/allreduce.h"

namespace experiments::allreduce_precision {

/// Every order of additions but Rabenseifner's, which has the sums of recursive doubling.
inline constexpr std::array measured_algorithms{sim::AllReduceAlgorithm::ring,
                                                sim::AllReduceAlgorithm::binary_tree,
                                                sim::AllReduceAlgorithm::recursive_doubling,
                                                sim::AllReduceAlgorithm::recursive_halving_far_first,
                                                sim::AllReduceAlgorithm::direct,
                                                sim::AllReduceAlgorithm::direct_descending};
static_assert(measured_algorithms.size() + 1 == sim::all_reduce_algorithms.size());

/// The precisions of sums of halves, which the gradients are.
inline constexpr std::array measured_precisions{
    sim::AllReducePrecision::fp16, sim::AllReducePrecision::fp32_accumulation, sim::AllReducePrecision::fp32};

/// The gradients of one source at one loss scale, brought by so many workers.
struct Setting {
  Source source;
  int scale_log2;
  std::size_t workers;

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Measured {
  Setting setting;
  sim::AllReduce how;
  sim::TwinComparison loss;               ///< of the all-reduced mean (run) against the exact one (twin)
  double fraction_inputs_flushed;         ///< by the division before the sum, of all workers' non-zero values
  double fraction_inputs_overflow;        ///< infinite or NaN at their workers already, of all values
  double relative_error_of_one_rounding;  ///< of the exact mean, rounded once to binary16

  bool overflows() const { return loss.nonfinite > 0; }
};

/// The kind that scales and divisions are compared on: its order of additions is the least in the way.
constexpr sim::AllReduce usual{.algorithm = sim::AllReduceAlgorithm::recursive_doubling};

struct Findings {
  int scale_log2;      ///< of the loss, besides 2^0
  int max_scale_log2;  ///< of the sweep
  std::size_t elements;
  std::vector<Measured>
      all_reduces;               ///< by source, scale (2^0 first), workers, algorithm, precision, division
  std::vector<Measured> scales;  ///< `usual`, by source, scale, workers, division
  std::string nonfinite_clause;  ///< what is wrong with the gradients themselves; empty where nothing is
  sim::Evaluation evaluation;    ///< of the trained network
};

/// Every kind of all-reduce on the first `setting.workers` of the gradients, in the order that they are asked
/// for in.
std::vector<Measured> measure(const WorkerGradients& gradients, const Setting& setting,
                              std::span<const sim::AllReduce> kinds, int threads);

/// The measurement that is asked for, if it is there.
const Measured* find(std::span<const Measured> all, const Setting& setting, const sim::AllReduce& how);

/// The smallest number of workers at which such an all-reduce overflows where no worker's own gradient does.
std::optional<std::size_t> first_overflow(std::span<const Measured> all, Source source, int scale_log2,
                                          const sim::AllReduce& how);

/// The scales of the sweep, without a gap in between, at which nothing overflows and the error is at most a
/// quarter above its least: closer than that the luck of single roundings decides.
struct Window {
  int lowest;
  int highest;
};
std::optional<Window> usable_scales(std::span<const Measured> scales, Source source, std::size_t workers,
                                    sim::AllReduceDivision division);

/// The lowest scale of the sweep at which the gradient of one of so many workers is not finite.
std::optional<int> first_input_overflow(std::span<const Measured> scales, Source source, std::size_t workers);

/// 2, 4 ... 2^max_workers_log2.
std::vector<std::size_t> measured_workers(int max_workers_log2);
/// The numbers of workers that verdicts speak of: at a third of the octaves, at two thirds and at all, ascending.
std::vector<std::size_t> shown_workers(int max_workers_log2);

/// The measurement of one of all kinds of all-reduce at S = 1 or the other scale. It must be there.
const Measured& at(const Findings& found, const Setting& setting, const sim::AllReduce& how);

/// `usual` with another division.
sim::AllReduce usual_with(sim::AllReduceDivision division);

/// Trains in FP32, records the pool and measures.
Findings measure(const TrainingSetup& setup, sim::Trainer& trainer, const Options& options, Run& run);

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict; `setting` is what was trained how.
void report(Run& run, const Findings& found, const Options& options, const std::string& setting);

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const Findings& found, const Options& options, const std::string& setting);

}  // namespace experiments::allreduce_precision
