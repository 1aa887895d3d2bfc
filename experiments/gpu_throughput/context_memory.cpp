#include "experiments/gpu_throughput/context_memory.h"

#include <array>
#include <stdexcept>

#include "experiments/common/shared_library.h"
#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/sweep.h"

namespace experiments::gpu_throughput {
namespace {

/// nvmlMemory_t of nvml.h.
struct NvmlMemory {
  unsigned long long total, free, used;
};

/// NVML, which needs no context.
class DeviceMonitor {
 public:
  explicit DeviceMonitor(const std::string& uuid) : library_(names) {
    using Initialise = int();
    using FindDevice = int(const char* uuid, void** device);
    Initialise* initialise = nullptr;
    FindDevice* find_device = nullptr;
    library_.find("nvmlInit_v2", initialise);
    library_.find("nvmlDeviceGetHandleByUUID", find_device);
    library_.find("nvmlDeviceGetMemoryInfo", memory_);
    check(initialise(), "nvmlInit_v2");
    check(find_device(uuid.c_str(), &device_), "nvmlDeviceGetHandleByUUID");
  }

  std::int64_t used_bytes() const {
    NvmlMemory memory{};
    check(memory_(device_, &memory), "nvmlDeviceGetMemoryInfo");
    return static_cast<std::int64_t>(memory.used);
  }

 private:
  static constexpr std::array names{"libnvidia-ml.so.1", "libnvidia-ml.so"};

  static void check(int status, const char* function) {
    if (status != 0) throw std::runtime_error(std::string(function) + ": status " + std::to_string(status));
  }

  SharedLibrary library_;
  int (*memory_)(void* device, NvmlMemory* memory) = nullptr;
  void* device_ = nullptr;
};

}  // namespace

ContextMemory begin_context() {
  ContextMemory memory;
  std::optional<DeviceMonitor> monitor;
  std::int64_t before = 0;
  try {
    monitor.emplace(fp16::cuda::device().uuid);
    before = monitor->used_bytes();
  } catch (const std::runtime_error& error) {
    monitor.reset();
    memory.absent = error.what();
  }
  if (!fp16::cuda::available()) throw std::runtime_error(fp16::cuda::unavailable_reason());
  const fp16::cuda::MemoryInfo info = fp16::cuda::memory_info();
  memory.in_use_bytes = info.total - info.free;
  if (monitor) memory.bytes = monitor->used_bytes() - before;
  return memory;
}

}  // namespace experiments::gpu_throughput
