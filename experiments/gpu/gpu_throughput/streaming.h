#pragma once
/// The rows that stream through memory, against a copy on the device.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/gpu/gpu_throughput/timed_work.h"

namespace experiments::gpu_throughput {

/// The copy first.
std::vector<std::string> streaming_row_names();

/// What a row is held against; nothing for a name that is none of these.
std::vector<Comparison> streaming_comparisons(std::string_view name);

/// On arrays of `elements` elements: all of streaming_row_names(). The sets of buffers that the turns go round are
/// together larger than four times the L2 cache.
Group streaming_group(std::size_t elements);

}  // namespace experiments::gpu_throughput
