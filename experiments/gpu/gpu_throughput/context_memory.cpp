#include "experiments/gpu/gpu_throughput/context_memory.h"

#include <stdexcept>

#include "experiments/gpu/vendor/nvml.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/device_memory.h"

namespace experiments::gpu_throughput {
ContextMemory begin_context() {
  ContextMemory memory;
  std::string uuid;
  std::optional<std::int64_t> before;
  try {
    uuid = fp16::cuda::device().uuid;
    before = Nvml().used_bytes(uuid);
  } catch (const std::runtime_error& error) {
    memory.absent = error.what();
  }
  if (!fp16::cuda::available()) throw std::runtime_error(fp16::cuda::unavailable_reason());
  const fp16::cuda::MemoryInfo info = fp16::cuda::memory_info();
  memory.in_use_bytes = info.total - info.free;
  if (before) memory.bytes = Nvml().used_bytes(uuid) - *before;
  return memory;
}

}  // namespace experiments::gpu_throughput
