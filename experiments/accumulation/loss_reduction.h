#pragma once
/// The mean of a loss over a mini-batch: what sums in FP16 make of it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "experiments/frame/confidence.h"
#include "experiments/frame/experiment.h"

namespace experiments::accumulation {

/// Batches of 2^0 .. 2^max_batch_log2 values, whose reciprocals are numbers of binary16.
constexpr int max_batch_log2 = 17;

/// The relative error beyond which a reduction counts as failed, an infinite mean included.
constexpr double failing_error = 0.01;

/// What is averaged, of a prediction and a target.
enum class Loss { l1, mse };

/// Formats and order. Under `fp16_...` differences, squares, sums and means are rounded to binary16 each.
enum class Reduction { fp16_sequential, fp16_pairwise, fp32_sequential };

/// When the factor 1/n comes in: into the sum or into each value.
enum class Normalisation { sum_then_divide, divide_first };

std::string_view name_of(Loss loss);
std::string_view name_of(Reduction reduction);
std::string_view name_of(Normalisation normalisation);

/// A way to the mean of a loss.
struct MeanMethod {
  Loss loss;
  Reduction reduction;
  Normalisation normalisation;
};
std::vector<MeanMethod> mean_methods();

/// The mean of the losses of the first n predictions, codes of binary16, for each n = 2^0, 2^1 ...
std::vector<double> means_of_prefixes(const MeanMethod& method, const std::vector<std::uint16_t>& predictions,
                                      const std::vector<std::uint16_t>& targets);

/// Means of exact losses over the same prefixes, within 2^-35 of themselves.
std::vector<double> exact_means_of_prefixes(Loss loss, const std::vector<std::uint16_t>& predictions,
                                            const std::vector<std::uint16_t>& targets);

struct MeanError {
  int batch_log2;
  double ratio = 0;    ///< computed / exact, mean over the repeats; infinite where one is
  Estimate error;      ///< |computed - exact| / exact
  double largest = 0;  ///< of the errors
  int not_finite = 0;  ///< repeats
};

/// How a method fails in the worst of the repeats, and the batch from which on it does.
struct Failure {
  enum class Kind { stalls, overflows };

  Kind kind;
  int batch_log2;
};
std::string_view name_of(Failure::Kind kind);

struct MeasuredMean {
  MeanMethod method;
  std::vector<MeanError> errors;  ///< of each batch

  std::optional<Failure> failure() const;
};

/// Predictions and targets are normal random numbers of variance 1, as halves: a network before training.
std::vector<MeasuredMean> measure_means(std::uint64_t seed, int repeats, Run& run);

}  // namespace experiments::accumulation
