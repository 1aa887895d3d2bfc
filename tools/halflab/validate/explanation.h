#pragma once
/// Which deviations explain what differs.

#include <array>
#include <cstddef>
#include <vector>

#include "tools/halflab/validate/findings.h"

namespace halflab::validate {

using DeviationSet = std::vector<std::size_t>;

/// The contradictions of each deviation, in their order.
struct AllContradictions {
  std::array<Contradictions, most_deviations> of{};

  AllContradictions& operator+=(const AllContradictions& other);
};

/// The smallest sets that together explain all, with at most one way of rounding; of these those that the fewest right
/// results of the sample contradict. None against which more right results speak than wrong ones for it.
std::vector<DeviationSet> explanations(const Counts& counts, const std::vector<Deviation>& deviations);

/// The deviations that are in one of the sets.
std::vector<std::size_t> members_of(const std::vector<DeviationSet>& sets);

/// The first of the sets that the fewest right results contradict.
const DeviationSet& best_of(const std::vector<DeviationSet>& sets, const AllContradictions& contradictions);

}  // namespace halflab::validate
