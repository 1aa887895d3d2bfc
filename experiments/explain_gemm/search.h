#pragma once
/// Which hypotheses give every bit of D?

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/explain_gemm/hypotheses.h"

namespace experiments::explain_gemm {

struct SearchOptions {
  int most_slices = 16;
  int most_verified = 32;  ///< of the hypotheses that no sample refutes, how many are held against all of D
};

/// A hypothesis and the outputs that it was held against: all of them, or a sample of rows and columns.
struct Tried {
  Hypothesis hypothesis;
  std::size_t outputs = 0;
  std::size_t explained = 0;
  std::optional<std::size_t> first_unexplained = {};  ///< index into D, row-major

  std::size_t unexplained() const { return outputs - explained; }
};

struct Explanation {
  std::vector<Tried> tried;  ///< every hypothesis, in the order of hypotheses()
  /// Indices into `tried` of those held against all outputs, the fewest unexplained first, in a tie the
  /// simplest; never empty.
  std::vector<std::size_t> verified;
  std::size_t not_refuted = 0;  ///< explain all of their sample, but were one too many for all of D

  const Tried& best() const { return tried[verified.front()]; }
  /// How many reproduce every bit of D; they stand first in `verified`.
  std::size_t candidates() const;
};

/// Whether a predicted code explains an observed one: the same bits, or two NaNs, whose payloads are left to
/// the conversion that stored them.
bool explains(const fp16::Format& format, std::uint32_t predicted, std::uint32_t observed);

/// Holds all hypotheses against samples of growing size first, of which those that explain the most stay;
/// then those left against all of D. Small problems are held against all of D at once.
Explanation explain(const Problem& problem, const SearchOptions& options, const Run& run);

/// What the hypothesis makes of all of D, row-major.
std::vector<std::uint32_t> predicted(const Problem& problem, const Hypothesis& hypothesis, const Run& run);

}  // namespace experiments::explain_gemm
