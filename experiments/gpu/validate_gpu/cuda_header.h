#pragma once
/// The host functions of NVIDIA's cuda_fp16.h behind plain C++: its global names stay in one source file.

#include <cstdint>
#include <span>
#include <string_view>

#include "experiments/gpu/validate_gpu/operands.h"

namespace experiments::validate_gpu {

struct HeaderFunctions {
  std::string_view operation;  ///< as operations() calls it
  Function scalar;             ///< null where there is none
  /// Two lanes: the operands of the first in the lower 16 bits of a, b and c, of the second in the next 16,
  /// and so in the result. Null where there is none.
  Function packed;
};

/// None where the header was not found when the program was built.
std::span<const HeaderFunctions> cuda_header_functions();

/// "CUDA 13.0"; empty where the header was not found.
std::string_view cuda_header_version();

}  // namespace experiments::validate_gpu
