#include "experiments/gpu/probes/intrinsics.h"
#include "experiments/gpu/probes/traversal.cuh"

namespace experiments::probes {

using namespace fp16::ops;

FP16_ARITHMETIC_INTRINSICS(FP16_NATIVE)

std::vector<SweepKernels> arithmetic_kernels() {
  return {FP16_ARITHMETIC_INTRINSICS(FP16_SWEEP_KERNELS)};
}

}  // namespace experiments::probes
