#pragma once
/// What a row's shards gave, added up: the same whoever computed them, and when.

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/validation/domains.h"
#include "experiments/validation/numbers.h"
#include "experiments/validation/shards.h"

namespace experiments::validation {

struct RowOutcome {
  std::size_t row;       ///< its number in the program's list
  std::string obstacle;  ///< why it does not run here; empty where it does
  std::uint32_t shards_wanted = 0;
  std::uint32_t shards_finished = 0;  ///< of these, now or earlier; the following are of them alone
  std::uint64_t inputs = 0;
  std::uint64_t inputs_now = 0;  ///< tried by this run and not by an earlier one
  std::uint64_t mismatches = 0;  ///< with other NaNs where the NaN's bits are promised
  std::uint64_t documented = 0;
  std::uint64_t other_nans = 0;
  std::uint64_t misrounded = 0;
  std::vector<Example> examples;
  double time_s = 0;  ///< of this run, summed over the threads; on the device where rows share a kernel, its
};

/// Adds the wanted shards that are finished. `visit(shard, result)` is called for each whose results hold an example of what
/// differs.
template <typename Visit>
void add_up(RowOutcome& outcome, const Domain& domain, const std::vector<std::uint32_t>& wanted,
            const FinishedShards& finished, Visit visit) {
  for (const std::uint32_t shard : wanted) {
    ++outcome.shards_wanted;
    const auto found = finished.find(shard);
    if (found == finished.end()) continue;
    const ShardResult& result = found->second;
    ++outcome.shards_finished;
    outcome.inputs += domain.inputs_of(shard);
    outcome.mismatches += result.mismatches;
    outcome.documented += result.documented;
    outcome.other_nans += result.other_nans;
    outcome.misrounded += result.misrounded;
    if (result.mismatches != 0 || result.other_nans != 0 || result.misrounded != 0) visit(shard, result);
  }
}

}  // namespace experiments::validation
