#pragma once
/// The device's memory for what is timed, and whether what it holds is right.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "experiments/gpu/gpu_throughput/timed_work.h"
#include "fp16/bits.h"
#include "fp16/formats.h"

namespace experiments::gpu_throughput {

/// How many sets of buffers, of which a call touches at least `working_set` bytes, are together larger than four times
/// the L2 cache: nothing of a set is left there when its turn comes again. From 2 to 64, so that calls on little
/// memory do find theirs in the cache.
std::size_t sets_beyond_cache(std::size_t working_set);

/// Throws std::runtime_error, one line, if the device has less free memory.
void require_device_memory(std::size_t bytes);

/// The bytes of results that are all wrong until they are written.
inline constexpr unsigned char poison = 0xa5;

inline bool is_same(std::uint16_t a, std::uint16_t b) {
  return a == b || (fp16::is_nan<fp16::binary16>(a) && fp16::is_nan<fp16::binary16>(b));
}
inline bool is_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b);
}

/// Element by element. Throws std::logic_error if the sizes differ.
template <typename Value>
Check compare(const std::vector<Value>& found, const std::vector<Value>& expected) {
  if (found.size() != expected.size()) throw std::logic_error("compare: the arrays differ in size");
  Check check{.compared = found.size()};
  for (std::size_t i = 0; i < found.size(); ++i) check.wrong += !is_same(found[i], expected[i]);
  return check;
}

}  // namespace experiments::gpu_throughput
