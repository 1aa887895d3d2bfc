#pragma once
/// What the threads of a sweep report together.

#include <algorithm>

#include "experiments/gpu/probes/sweep.h"

namespace experiments::probes {

/// The sum over the threads of a warp, in its first one.
inline __device__ unsigned long long warp_sum(unsigned long long value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}

/// What one thread has counted.
struct ThreadCounts {
  unsigned long long mismatches = 0;
  unsigned long long nan_mismatches = 0;
  unsigned long long digest = 0;
};

struct Report {
  unsigned long long mismatches = 0;
  unsigned long long nan_mismatches = 0;
  unsigned long long digest = 0;
  /// Ascending, each once; `none` behind the last.
  unsigned long long first_indices[max_counterexamples];

  static constexpr unsigned long long none = ~0ull;

  Report() { std::ranges::fill(first_indices, none); }

  /// By all threads of a warp together.
  __device__ void add(const ThreadCounts& counts) {
    const unsigned long long all_mismatches = warp_sum(counts.mismatches),
                             all_nan_mismatches = warp_sum(counts.nan_mismatches),
                             all_digests = warp_sum(counts.digest);
    if (threadIdx.x % 32 != 0) return;
    atomicAdd(&mismatches, all_mismatches);
    atomicAdd(&nan_mismatches, all_nan_mismatches);
    atomicAdd(&digest, all_digests);
  }

  /// Keeps the lowest of all indices given, in whatever order they come, and how often: what one place gives up,
  /// the smallest that it has not seen being left in it, goes on to the next.
  __device__ void keep_lowest(unsigned long long index) {
    if (index > *static_cast<volatile unsigned long long*>(&first_indices[max_counterexamples - 1])) return;
    for (int i = 0; i < max_counterexamples && index != none; ++i) {
      const unsigned long long held = atomicMin(&first_indices[i], index);
      if (held == index) return;
      if (held > index) index = held;
    }
  }
};

}  // namespace experiments::probes
