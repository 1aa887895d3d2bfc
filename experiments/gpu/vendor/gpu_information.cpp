#include "experiments/gpu/vendor/gpu_information.h"

#include <fmt/format.h>

#include <stdexcept>

#include "experiments/gpu/vendor/nvml.h"
#include "fp16/cuda/device.h"

namespace experiments {
namespace {

std::string driver_version(int cuda_version) {
  try {
    return Nvml().driver_version();
  } catch (const std::runtime_error&) {
    return "for CUDA " + cuda_version_text(cuda_version);
  }
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

GpuInformation gpu_information(const fp16::cuda::Device& device) {
  return {.name = device.name,
          .driver = driver_version(device.driver),
          .uuid = device.uuid,
          .compute_capability = device.compute_capability};
}

}  // namespace experiments
