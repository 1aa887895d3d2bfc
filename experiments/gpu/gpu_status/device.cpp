#include "experiments/gpu/gpu_status/device.h"

#include <array>
#include <stdexcept>

#include "experiments/gpu/vendor/cublas.h"
#include "experiments/gpu/vendor/cublas_lt.h"
#include "experiments/gpu/vendor/gpu_information.h"
#include "experiments/gpu/vendor/shared_library.h"
#include "fp16/cuda/device.h"

namespace experiments::gpu_status {
namespace {

/// The driver API's answer (cuInit, cuDeviceGetCount); the runtime cannot be asked, which an emulator stands
/// in for.
bool driver_has_device() {
  constexpr std::array names{"libcuda.so.1"};
  try {
    const SharedLibrary driver(names);
    int (*initialise)(unsigned flags) = nullptr;
    int (*device_count)(int* count) = nullptr;
    driver.find("cuInit", initialise);
    driver.find("cuDeviceGetCount", device_count);
    int count = 0;
    return initialise(0) == 0 && device_count(&count) == 0 && count > 0;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

std::optional<GpuInformation> gpu() {
  if (const std::string reason = fp16::cuda::unavailable_reason(); !reason.empty())
    throw std::runtime_error(reason);
  if (!driver_has_device()) return std::nullopt;
  return gpu_information(fp16::cuda::device());
}

std::string cublas_absent() {
  const OpenedCublas cublas = open_cublas();
  return cublas.cublas ? open_cublas_lt().absent : cublas.absent;
}

}  // namespace experiments::gpu_status
