#pragma once
/// The options of formats: what they are by default, and how the command line sets them.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "experiments/frame/command_line.h"

namespace experiments::formats {

constexpr std::size_t row_length = 256;
constexpr int largest_spread = 8;

/// What the tensor is.
struct Options {
  std::uint64_t seed = 0;
  int rows = 1024;
  int spread = 3;  ///< octaves by which rows differ in the verdict and over the block sizes

  std::size_t elements() const { return static_cast<std::size_t>(rows) * row_length; }
};

inline void bind(CommandLine& command_line, Options& options) {
  command_line.add("--rows", options.rows, fmt::format("rows of {} values each", row_length),
                   {.minimum = 1, .maximum = 16384, .quick = 32});
  command_line.add("--spread", options.spread,
                   "octaves by which rows differ in the verdict and over the block sizes",
                   {.minimum = 0, .maximum = largest_spread});
  command_line.add_seed(options.seed);
}

}  // namespace experiments::formats
