#pragma once
/// A CUDA device as records name it.

#include <string>

#include "experiments/frame/record.h"
#include "fp16/cuda/device.h"

namespace experiments {

/// "13.0" of CUDA's 13000.
std::string cuda_version_text(int version);

/// The driver's version is NVML's. A machine may lack that library and have a driver all the same: then "for CUDA
/// 13.0", the newest that the driver supports, stands for it.
GpuInformation gpu_information(const fp16::cuda::Device& device);

}  // namespace experiments
