#include "fp16/cuda/intrinsics.h"
#include "fp16/cuda/traversal.cuh"

namespace fp16::cuda {

using namespace ops;

FP16_FMA_INTRINSICS(FP16_NATIVE)
FP16_SM80_INTRINSICS(FP16_NATIVE)

std::vector<SweepKernels> fma_kernels() {
  return {FP16_FMA_INTRINSICS(FP16_SWEEP_KERNELS) FP16_SM80_INTRINSICS(FP16_SWEEP_KERNELS)};
}

}  // namespace fp16::cuda
