#pragma once
/// The rows that stream through memory, against a copy on the device.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/gpu_throughput/timed_work.h"

namespace experiments::gpu_throughput {

/// Values as gradients have them: exponents in a heap of some twenty octaves around binary16's smallest normal
/// number, a sixteenth zeros, and an infinity or a NaN now and then.
std::vector<float> gradient_floats(std::size_t count);
std::vector<std::uint16_t> gradient_halves(std::size_t count);

/// The copy first.
std::vector<std::string> streaming_row_names();

/// What a row is held against; nothing for a name that is none of these.
std::vector<Comparison> streaming_comparisons(std::string_view name);

/// On arrays of `elements` elements: all of streaming_row_names(). The sets of buffers that the turns go round are
/// together larger than four times the L2 cache.
Group streaming_group(std::size_t elements);

}  // namespace experiments::gpu_throughput
