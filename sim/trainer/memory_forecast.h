#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/trainer/trainer.h"

namespace sim {

/// The bytes that the tensors of a run take at most, for every batch, from a step with two examples and one with
/// three; of several ranks, with as many on each. (Of one example alone batch norm may have no statistics.)
///
/// Every tensor of a step has as many elements for each example as for another, or as many for any batch. And what a
/// step allocates and frees, in which order, does not depend on the batch. So the bytes in use after its n-th
/// allocation are a straight line in the batch, which two batches give exactly; the peak is the highest of the
/// lines. Where the two steps took other ways all the same (one was skipped), their two peaks give the line.
class MemoryForecast {
 public:
  /// Trains what `make` makes for these two batches until an update is applied, or 20 steps were not.
  explicit MemoryForecast(const std::function<Trainer(std::size_t batch)>& make, std::uint64_t ranks = 1);

  /// An example on every rank; all batches are multiples of it.
  std::uint64_t smallest_batch() const { return ranks_; }
  std::uint64_t peak_bytes(std::uint64_t batch) const;

  /// The largest batch up to `most` whose peak is at most `bytes`; 0: not even the smallest one fits.
  std::uint64_t largest_batch(std::uint64_t bytes, std::uint64_t most) const;

 private:
  struct Line {
    std::int64_t at_2, slope;
  };
  std::uint64_t ranks_;
  std::vector<Line> levels_;  ///< by the examples of a rank
};

}  // namespace sim
