#include "fp16/vector/gemm_lanes.h"
#include "fp16/vector/lanes_neon_fp16.h"

namespace fp16::detail {

constinit const TileKernels neon_fp16_tile_kernels =
    tile_kernels<NeonFloats, NeonDoubles, NeonFp16FmaChain, NeonFp16MulAddChain>();

}  // namespace fp16::detail
