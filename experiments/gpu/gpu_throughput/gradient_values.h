#pragma once
/// Values as gradients have them.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace experiments::gpu_throughput {

/// Exponents in a heap of some twenty octaves around binary16's smallest normal number, a sixteenth zeros, and an
/// infinity or a NaN now and then.
std::vector<float> gradient_floats(std::size_t count);
std::vector<std::uint16_t> gradient_halves(std::size_t count);

}  // namespace experiments::gpu_throughput
