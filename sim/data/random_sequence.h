#pragma once

#include <cstdint>

#include "sim/tensor/random.h"

namespace sim {

/// The numbers of a random stream from an index on, one after the other: each call takes the next index.
class RandomSequence {
 public:
  /// The stream must outlive the sequence.
  RandomSequence(const RandomStream& stream, std::uint64_t first) : stream_(&stream), next_(first) {}

  /// low + (high - low) u with u uniform in [0, 1), in floats.
  float uniform(float low, float high) { return low + (high - low) * stream_->uniform(next_++); }

  /// Normal, of mean 0.
  float normal(float deviation) { return deviation * stream_->normal(next_++); }

  /// An integer in [0, n), n from 1 on.
  std::uint64_t below(std::uint64_t n) { return stream_->below(next_++, n); }

 private:
  const RandomStream* stream_;
  std::uint64_t next_;
};

}  // namespace sim
