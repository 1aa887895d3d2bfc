#include "experiments/gpu/probes/intrinsics.h"
#include "experiments/gpu/probes/traversal.cuh"

namespace experiments::probes {

using namespace fp16::ops;

FP16_FMA_INTRINSICS(FP16_NATIVE)
FP16_SM80_INTRINSICS(FP16_NATIVE)

std::vector<SweepKernels> fma_kernels() {
  return {FP16_FMA_INTRINSICS(FP16_SWEEP_KERNELS) FP16_SM80_INTRINSICS(FP16_SWEEP_KERNELS)};
}

}  // namespace experiments::probes
