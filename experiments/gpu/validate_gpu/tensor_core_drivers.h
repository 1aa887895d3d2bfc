#pragma once
/// Tensor-core instructions against the model, or themselves, on the device.

#include <vector>

#include "experiments/gpu/validate_gpu/driver.h"

namespace experiments::validate_gpu {

/// One for each instruction, accumulator and family of inputs.
void append_tensor_core_drivers(std::vector<Driver>& drivers);

}  // namespace experiments::validate_gpu
