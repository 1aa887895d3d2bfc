#pragma once
/// The kind of a difference between D and the hypothesis that explains most of it: another order of rounding,
/// an overflow on the way, or an error that no rounding makes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "experiments/explain_gemm/search.h"

namespace experiments::explain_gemm {

/// Where roundings to 16 bits take part, besides that of D; each allows for what those before it do.
enum class Arithmetic {
  fp32,
  narrow_reduction,  ///< of slices' sums, to FP16 or bfloat16 as the operands are, and in the epilogue to D's format
  fp16_accumulators  ///< FP16 operands alone
};
inline constexpr std::size_t arithmetic_count = 3;

std::string_view name_of(Arithmetic arithmetic, const Problem& problem);
Arithmetic arithmetic_of(const Hypothesis& hypothesis);

/// An output in exact arithmetic, each number rounded to double.
struct ExactOutput {
  double value;  ///< alpha sum a b + beta c
  /// |alpha| sum |a||b| + |beta c|, where operands below the normal numbers of their format count as the smallest of
  /// these, by which tensor cores align them.
  double magnitudes;
};
ExactOutput exact_output(const Problem& problem, std::size_t output);

/// |D - exact value| is at most this, for every order of summation in that arithmetic with at most
/// `most_slices` slices, whichever of the accumulators is used; without overflow. An arithmetic that such operands are
/// not added in counts as the loosest that they are. Tensor cores are taken to add products of bfloat16 as they add
/// those of FP16; FP32 operands are for chains alone, fused or not.
///
/// With u the unit roundoff, each of n roundings of a sum changes it by at most u times its magnitudes, all
/// of them together by (1 + u)^n - 1 <= e^(n u) - 1 times all magnitudes (Higham, "Accuracy and Stability of
/// Numerical Algorithms", 2nd edition, 2002, chapter 3), and by 2^-25 each where results are subnormal
/// halves; factors that are rounded to FP16 change their products by as much. In place of u a step of L
/// products on a tensor core has (L + 1) 2^-F for its truncated terms and that of its rounding (mma.h).
double error_bound(const Problem& problem, Arithmetic arithmetic, const ExactOutput& exact, int most_slices);

/// The smallest k at which an exact sum of products leaves the range of the narrowest sums, FP16's by an absolute value of
/// 65520 or more with FP16 operands, FP32's with others: in a slice, or of the slices so far, where k is that of the
/// slice's last product. Nothing where none does.
std::optional<std::size_t> first_overflow(const Problem& problem, std::size_t output, const Slices& slices);

enum class Kind {
  rounding,   ///< within the bound of the arithmetic that explains most outputs, or all of them
  undecided,  ///< beyond FP32's bound, within that of sums of 16 bits; no hypothesis explains most outputs
  overflow,   ///< infinity or NaN where sums can overflow and the exact value need not
  real_bug,   ///< beyond the bound, so that no order of roundings makes it
};
std::string_view name_of(Kind kind);

struct Difference {
  std::size_t output;  ///< index into D, row-major
  std::uint32_t predicted;
  std::uint32_t observed;
  ExactOutput exact;
  std::array<double, arithmetic_count> bounds;
  Kind kind;
  std::optional<std::size_t> overflow_at;  ///< of an overflow, first_overflow()

  /// |observed - exact|; NaN where one of them is not finite.
  double error(const fp16::Format& format) const;
};

/// Some outputs, and the first of them.
struct Tally {
  std::size_t count = 0;
  std::optional<std::size_t> first;

  void add(std::size_t output) {
    ++count;
    if (!first) first = output;
  }
  void add(const Tally& later) {
    count += later.count;
    if (!first) first = later.first;
  }
};

struct Classification {
  Arithmetic arithmetic;                ///< whose bound decides
  bool majority;                        ///< the best hypothesis explains more than half of the outputs
  std::vector<Difference> differences;  ///< worst kind first, then by their place
  /// Outputs that are not finite though the exact value would be, where sums can overflow, whether a hypothesis explains
  /// them or not.
  std::size_t overflowed = 0;
  std::optional<std::size_t> first_overflow_output;
  std::optional<std::size_t> first_overflow_at;  ///< the smallest k of them
  Tally beyond_range = {};                       ///< not finite, whose exact values D's format cannot hold
  Tally from_operands = {};                      ///< not finite because an element of A, B or C is not

  /// Root mean squares: of |D - exact| over the differences that are rounding; over all of them, of what the first
  /// hypothesis, a chain in FP32, makes there.
  double rounding_error = 0, chain_error = 0;
  /// Over the undecided ones: of |D - exact|, and of what narrow_hypothesis() makes there.
  double undecided_error = 0, narrow_error = 0;

  std::size_t count(Kind kind) const;
  /// Whether the differences are within their bounds, which grow with k, but far from what FP32 sums usually make.
  bool is_doubtful() const;
  /// Whether the undecided ones are far from what sums of 16 bits usually make.
  bool is_far_off() const { return undecided_error > 8 * narrow_error; }
  /// "none" without differences and overflows, otherwise that of the worst kind.
  std::string_view name() const;
};

/// The first of those whose arithmetic allows for most roundings.
const Hypothesis& narrow_hypothesis(const Explanation& found);

/// The arithmetic is the best hypothesis's where that explains more than half of the outputs. Otherwise it
/// is the first whose bound holds for all that is finite; where that needs FP16 sums, outputs beyond FP32's
/// bound are undecided, and where none does, outputs beyond them all are real bugs.
Classification classify(const Problem& problem, const Explanation& found, int most_slices, const Run& run);

}  // namespace experiments::explain_gemm
