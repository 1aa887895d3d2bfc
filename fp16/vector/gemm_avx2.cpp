#include "fp16/vector/gemm_lanes.h"
#include "fp16/vector/lanes_avx2.h"

namespace fp16::detail {

constinit const TileKernels avx2_tile_kernels = tile_kernels<Avx2Floats, Avx2Doubles>();

}  // namespace fp16::detail
