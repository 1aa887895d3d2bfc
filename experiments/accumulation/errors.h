#pragma once
/// The errors of sums and dot products of growing length, of every accumulator on every distribution.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "experiments/accumulation/accumulators.h"
#include "experiments/accumulation/operands.h"
#include "experiments/accumulation/options.h"
#include "experiments/frame/confidence.h"
#include "experiments/frame/experiment.h"

namespace experiments::accumulation {

/// 2^min_length_log2 .. 2^max_length_log2.
std::vector<std::size_t> lengths(const Options& options);

/// An error over the vectors of a distribution; infinite where one of the sums is not finite.
struct ErrorStatistics {
  Estimate mean;
  double largest = 0;
};

/// The error of one accumulator at one length.
struct Measured {
  const Distribution* distribution;
  const Accumulator* accumulator;
  int length_log2;
  ErrorStatistics relative;  ///< |computed - exact| / |exact|
  ErrorStatistics backward;  ///< |computed - exact| / sum |a[k] b[k]|
  /// (|computed| - |exact|) / sum |a[k] b[k]|, mean over the vectors; negative: toward zero.
  double backward_bias = 0;
  int not_finite = 0;  ///< vectors whose sum overflowed

  ErrorBounds bounds() const { return error_bounds(*accumulator, std::size_t{1} << length_log2); }
};

/// All measurements, ordered by distribution, then accumulator, then length.
struct Errors {
  std::vector<Measured> dots;  ///< of a and b
  std::vector<Measured> sums;  ///< of a alone: dot products with ones
};

/// The shorter vectors are the beginnings of the longest ones.
Errors measure_errors(const std::vector<Accumulator>& accumulators, const Options& options, Run& run);

/// The one of that distribution, accumulator and length, which must be there.
const Measured& find(const std::vector<Measured>& rows, std::string_view distribution,
                     std::string_view accumulator, int length_log2);

}  // namespace experiments::accumulation
