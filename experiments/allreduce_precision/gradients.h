#pragma once
/// The gradients that the workers of an all-reduce bring: of a network, each from a micro-batch of its own,
/// and drawn from a normal distribution that is fitted to these.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "experiments/training/training_setup.h"
#include "fp16/exponent_histogram.h"
#include "sim/precision/precision_policy.h"
#include "sim/trainer/trainer.h"

namespace experiments::allreduce_precision {

enum class Source {
  /// FP16 backward passes of a pool of micro-batches. Worker r has micro-batch r; workers beyond the pool
  /// draw one of it each, so that some have the same.
  network,
  /// Independent draws for every worker, each element with mean and standard deviation of its own: those of
  /// the pool, differentiated in FP32.
  normal,
};
inline constexpr std::array sources{Source::network, Source::normal};

/// "network" or "normal".
std::string_view name_of(Source source);

struct PoolOptions {
  std::size_t micro_batches;
  std::size_t examples;  ///< of a micro-batch
  std::size_t elements;  ///< of the gradient of all parameters, at most; chosen at random
  std::size_t workers;   ///< at most
  std::uint64_t seed;
  int threads;  ///< no bit depends on it
};

/// One array of the same length for each worker, of values of binary16.
struct WorkerGradients {
  std::vector<std::vector<float>> arrays;
  std::vector<std::span<const float>> workers;  ///< each one of the arrays
};

/// What the gradients are made from: micro-batches recorded under the policy on the present weights.
class GradientPool {
 public:
  /// The micro-batches are the next that the trainer would see. The policy must outlive the pool.
  GradientPool(const TrainingSetup& setup, const sim::Trainer& trainer, const sim::PrecisionPolicy& policy,
               const PoolOptions& options);

  /// Gradients of the loss times 2^scale_log2. `network` runs a backward pass each; `normal` multiplies and
  /// rounds once.
  WorkerGradients gradients(Source source, int scale_log2) const;

  std::size_t elements() const { return elements_.size(); }
  /// Exponents of the gradients of the loss itself, in FP32, of the pool and of all normal workers.
  const fp16::ExponentHistogram& exponents() const { return exponents_; }

 private:
  void record(const TrainingSetup& setup, const sim::Trainer& trainer, const sim::PrecisionPolicy& policy);
  void choose_elements();
  std::vector<float> chosen(const sim::SiteGradients& gradients) const;
  void draw_normal(std::span<const std::vector<float>> twins);

  PoolOptions options_;
  std::vector<sim::RecordedStep> steps_;
  std::vector<std::uint32_t> elements_;  ///< places among the gradients of all parameters, ascending
  std::vector<std::vector<float>> normal_;
  fp16::ExponentHistogram exponents_;
};

}  // namespace experiments::allreduce_precision
