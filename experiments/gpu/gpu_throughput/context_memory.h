#pragma once
/// What a CUDA context takes of the device's memory before anything is allocated.

#include <cstdint>
#include <optional>
#include <string>

namespace experiments::gpu_throughput {

struct ContextMemory {
  /// The device's used memory by NVIDIA's management library (NVML) after the first call of the runtime that needs
  /// a context, less what was used before it: this process's context, unless others allocated or freed at the
  /// same moment.
  std::optional<std::int64_t> bytes;
  std::string absent;  ///< why there is no such number
  /// All memory of the device that is not free just after: this context and whatever others hold, the driver among
  /// them. An upper bound.
  std::uint64_t in_use_bytes = 0;
};

/// Begins the context. To be called before anything else is asked of the device. Throws std::runtime_error, one
/// line, if there is no device that runs the kernels.
ContextMemory begin_context();

}  // namespace experiments::gpu_throughput
