#pragma once
/// Parts of a batch that ranks compute side by side, and how they know of each other.

#include <cstddef>
#include <span>
#include <vector>

namespace sim {

/// One of the equal parts of a batch, in the order of its examples: example i of a part of n has the place
/// index * n + i in the batch.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// The numbers that the shards of a batch show each other while each is computed by a rank of its own.
class ShardGathering {
 public:
  virtual ~ShardGathering() = default;

  /// What every shard hands over, one after the other in the order of the shards. All of them call it equally often,
  /// in the same order and with as many numbers.
  virtual std::vector<double> gather(std::span<const double> own) = 0;
};

}  // namespace sim
