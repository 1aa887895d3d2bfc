#pragma once
/// The GPU of this machine, and its cuBLAS.

#include <optional>
#include <string>

#include "experiments/frame/record.h"

namespace experiments::gpu_status {

/// The device that the kernels run on; nothing unless NVIDIA's driver itself answers that it has one, so that
/// an emulated device is none. Throws std::runtime_error, one line, where kernels cannot run.
std::optional<GpuInformation> gpu();

/// Why cuBLAS or cuBLASLt cannot be used, as one line; empty where they can.
std::string cublas_absent();

}  // namespace experiments::gpu_status
