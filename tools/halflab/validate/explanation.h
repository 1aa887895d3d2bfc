#pragma once
/// Which deviations explain what differs.

#include <cstddef>
#include <vector>

#include "tools/halflab/validate/findings.h"

namespace halflab::validate {

using DeviationSet = std::vector<std::size_t>;

/// The smallest sets that together explain all, with at most one way of rounding; of these those that the fewest right
/// results of the sample contradict, first of sets without a range, then of sets with one. None against which more right
/// results speak than wrong ones for it.
std::vector<DeviationSet> explanations(const Counts& counts, const std::vector<Deviation>& deviations);

}  // namespace halflab::validate
