#pragma once
/// What the trials of one shard gave.

#include <cstdint>

namespace experiments::validation {

struct ShardResult {
  std::uint64_t digest = 0;  ///< of all results, in their order or with the numbers of their inputs
  std::uint64_t mismatches = 0;
  std::uint64_t documented = 0;  ///< documented deviations from the software half
  std::uint64_t other_nans = 0;  ///< NaNs of other bits than the expected NaN
  std::uint64_t misrounded = 0;  ///< numbers that are not correctly rounded, where that is not promised

  friend bool operator==(const ShardResult&, const ShardResult&) = default;
};

}  // namespace experiments::validation
