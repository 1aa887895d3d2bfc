#pragma once
/// The options of accumulation: what they are by default, and how the command line sets them.

#include <cstdint>

#include "experiments/frame/command_line.h"

namespace experiments::accumulation {

/// Lengths begin at 2^this.
constexpr int min_length_log2 = 4;

struct Options {
  std::uint64_t seed = 0;
  int vectors = 8;  ///< pairs of them of each distribution
  int max_length_log2 = 20;
};

inline void bind(CommandLine& command_line, Options& options) {
  command_line.add("--lengths-log2", options.max_length_log2, "lengths run from 2^4 to 2^this",
                   {.minimum = min_length_log2 + 1, .maximum = 24, .quick = 12});
  command_line.add("--vectors", options.vectors, "pairs of random vectors, each measured at every length",
                   {.minimum = 1, .maximum = 1000, .quick = 3});
  command_line.add_seed(options.seed);
}

}  // namespace experiments::accumulation
