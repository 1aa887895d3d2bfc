#include "fp16/cuda/intrinsics.h"
#include "fp16/cuda/traversal.cuh"

namespace fp16::cuda {

using namespace ops;

FP16_INTEGRAL_INTRINSICS(FP16_NATIVE)

std::vector<SweepKernels> integral_kernels() {
  return {FP16_INTEGRAL_INTRINSICS(FP16_SWEEP_KERNELS)};
}

}  // namespace fp16::cuda
