#include "experiments/gpu/validate_gpu/cuda_header.h"

namespace experiments::validate_gpu {

std::span<const HeaderFunctions> cuda_header_functions() {
  return {};
}

std::string_view cuda_header_version() {
  return {};
}

}  // namespace experiments::validate_gpu
