#pragma once
/// A CUDA device as records name it.

#include <fmt/format.h>

#include <string>

#include "fp16/cuda/sweep.h"
#include "sim/record.h"

namespace experiments {

/// "13.0" of CUDA's 13000.
inline std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

inline sim::GpuInformation gpu_information(const fp16::cuda::Device& device) {
  return {.name = device.name,
          .driver = cuda_version_text(device.driver),
          .uuid = device.uuid,
          .compute_capability = device.compute_capability};
}

}  // namespace experiments
