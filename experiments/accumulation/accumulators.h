#pragma once
/// The ways in which products of halves are added up, all of one shape.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/formats.h"
#include "fp16/sum.h"

namespace experiments::accumulation {

/// Codes of binary16.
using Halves = std::span<const std::uint16_t>;

/// The running sum, a code of the accumulator's format, after a[k] * b[k] of one step were added to `sum`. a
/// and b have the same length, at most that of a step.
using Step = std::function<std::uint32_t(std::uint32_t sum, Halves a, Halves b)>;

/// Either a chain of steps from +0, k ascending, or an order for the products' roundings to binary16.
struct Accumulator {
  std::string name;
  fp16::Format format;  ///< of the running sum, and of the result
  Step step = {};       ///< empty: not a chain
  std::size_t products_per_step = 1;
  /// Largest error of a step over the magnitudes that it adds, of normal numbers and to first order.
  double step_error = 0;
  bool truncates = false;                                 ///< the sum of a step is rounded toward zero
  const fp16::SumOrder<fp16::binary16>* order = nullptr;  ///< null: a chain
};

/// The chains that sim::product_accumulation_names() lists, under these names, then "fp16_" and the name of
/// each order of fp16::sum_orders but the sequential one, which is fp16_mul_add.
std::vector<Accumulator> accumulators();

/// Sums of halves in binary16 one after the other, rounded otherwise than to nearest-even: a step adds a[0],
/// whatever b[0] is. Named "fp16_nearest_away" and so on.
std::vector<Accumulator> directed_additions();

/// Dot products of the first n elements of a and b for each n in `lengths`, which ascend; infinities and NaNs
/// are what became of a sum that left the format.
std::vector<double> dots_of_prefixes(const Accumulator& accumulator, Halves a, Halves b,
                                     std::span<const std::size_t> lengths);

/// Bounds on |computed - exact| over the sum of all |a[k] b[k]|, without underflow and overflow, to first order in
/// the unit roundoff u. NaN where there is none of the kind.
struct ErrorBounds {
  /// Certain: roundings on the longest way from a product to the result times u. Chains to nearest keep it
  /// however large n u is (Jeannerod and Rump, "Improved error bounds for inner products in floating-point
  /// arithmetic", 2013); trees by Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 4.2;
  /// steps of a tensor core as block fused multiply-adds (Blanchard, Higham, Lopez, Mary and Pranesh, "Mixed
  /// precision block fused multiply-add", 2020). NaN for compensated sums.
  double worst_case;
  /// The square root of the roundings times u: what rounding errors that are independent and of mean zero
  /// stay near (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019, with lambda
  /// = 1). NaN where sums are truncated, whose errors have no such mean.
  double probabilistic;
};
ErrorBounds error_bounds(const Accumulator& accumulator, std::size_t length);

/// What becomes of 1 + 1 + 1 + ...
struct SumOfOnes {
  enum class Outcome { stagnates, overflows };

  Outcome outcome;
  double value;        ///< that no further 1 changes; or the last one that is finite
  std::uint64_t ones;  ///< after which it no longer changes, or from which on it is not finite
};

std::string_view name_of(SumOfOnes::Outcome outcome);

/// Adds ones until the sum stops growing: a chain is followed step by step, any other order asked at powers of two.
SumOfOnes sum_of_ones(const Accumulator& accumulator);

}  // namespace experiments::accumulation
