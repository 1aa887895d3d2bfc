// For sm_90a; see wgmma.cuh.
#include "fp16/cuda/tensor_core.cuh"
#include "fp16/cuda/wgmma.cuh"

namespace fp16::cuda {

FP16_TENSOR_CORE_KERNELS(wgmma_m64n8k16, require_wgmma)
FP16_TENSOR_CORE_KERNELS(wgmma_m64n8k16_ra, require_wgmma)

}  // namespace fp16::cuda
