#include "fp16/vector/gemm_lanes.h"
#include "fp16/vector/lanes_neon.h"

namespace fp16::detail {

constinit const TileKernels neon_tile_kernels = tile_kernels<NeonFloats, NeonDoubles>();

}  // namespace fp16::detail
