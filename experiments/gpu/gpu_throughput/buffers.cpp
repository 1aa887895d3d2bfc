#include "experiments/gpu/gpu_throughput/buffers.h"

#include <fmt/format.h>

#include "fp16/cuda/device_memory.h"

namespace experiments::gpu_throughput {

std::size_t sets_beyond_cache(std::size_t working_set) {
  const std::size_t wanted = 4 * fp16::cuda::device_limits().l2_bytes;
  constexpr std::size_t least = 2, most = 64;
  return std::clamp(wanted / std::max<std::size_t>(working_set, 1) + 1, least, most);
}

void require_device_memory(std::size_t bytes) {
  constexpr double mebi = 1 << 20;
  const std::size_t free = fp16::cuda::memory_info().free;
  if (bytes > free)
    throw std::runtime_error(fmt::format(
        "the device has {:.0f} MiB of free memory, and {:.0f} are needed; a smaller --size or --matrix "
        "needs less",
        static_cast<double>(free) / mebi, static_cast<double>(bytes) / mebi));
}

}  // namespace experiments::gpu_throughput
