#pragma once
/// What the trials of one shard gave.

#include <cstdint>

namespace experiments::validation {

/// A digest of results in their order: FNV-1a by words of 64 bits, with the high bits folded back.
class ResultDigest {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x100000001B3;
    state_ ^= state_ >> 32;
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325;
};

struct ShardResult {
  std::uint64_t digest = 0;  ///< of all results, in their order or with the numbers of their inputs
  std::uint64_t mismatches = 0;
  std::uint64_t documented = 0;  ///< documented deviations from the software half
  std::uint64_t other_nans = 0;  ///< NaNs of other bits than the expected NaN
  std::uint64_t misrounded = 0;  ///< numbers that are not correctly rounded, where that is not promised

  friend bool operator==(const ShardResult&, const ShardResult&) = default;
};

}  // namespace experiments::validation
