#pragma once
/// Which hypotheses give every bit of D?

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "experiments/explain_gemm/hypotheses.h"
#include "experiments/frame/experiment.h"

namespace experiments::explain_gemm {

/// k is cut into no more slices, whatever is asked for.
inline constexpr int slices_at_most = 16;

struct SearchOptions {
  int most_slices = slices_at_most;
  int most_verified = 32;  ///< of the hypotheses that no sample refutes, how many are held against all of D
};

/// A hypothesis and the outputs that it was held against: all of them, or a sample of rows and columns.
struct Tried {
  Hypothesis hypothesis;
  std::size_t outputs = 0;
  std::size_t explained = 0;
  std::optional<std::size_t> first_unexplained;  ///< index into D, row-major
  std::size_t misses = 0;  ///< unexplained ones, one of those alone that the same numbers make

  std::size_t unexplained() const { return outputs - explained; }
};

/// The probability that an order half as far off as the hypothesis misses none of so many outputs, from what that
/// missed of those that it was held against: (tried / (tried + outputs / 2))^(misses + 1), or (2/3)^(misses + 1).
///
/// With a rate of misses that is unknown, all rates alike beforehand, and outputs that are independent: the mean of
/// e^(-rate outputs / 2) over the gamma distribution of the rate that the misses leave.
double chance_of_no_miss(const Tried& tried, std::size_t outputs);

struct Explanation {
  std::vector<Tried> tried;  ///< every hypothesis, in the order of hypotheses()
  /// Indices into `tried` of those held against all outputs, the fewest unexplained first, in a tie
  /// chains before tensor cores, then the simplest; never empty.
  std::vector<std::size_t> verified;
  std::size_t not_refuted = 0;  ///< explain all of their sample, but were too many for all of D

  const Tried& best() const { return tried[verified.front()]; }
  /// Otherwise the best is as good as any.
  bool has_best() const { return best().explained > 0; }
  /// How many reproduce every bit of D; they stand first in `verified`.
  std::size_t candidates() const;
};

/// Whether a predicted code explains an observed one: the same bits, or two NaNs, whose payloads are left to
/// the conversion that stored them.
bool explains(const fp16::Format& format, std::uint32_t predicted, std::uint32_t observed);

/// Holds all hypotheses against samples of growing size first, of which those that explain the most stay, and as
/// many rivals that chance would hardly let any other one survive all of D; then those left against all of D.
/// Small problems are held against all of D at once.
Explanation explain(const Problem& problem, const SearchOptions& options, const Run& run);

/// What the hypothesis makes of all of D, row-major.
std::vector<std::uint32_t> predicted(const Problem& problem, const Hypothesis& hypothesis, const Run& run);

}  // namespace experiments::explain_gemm
