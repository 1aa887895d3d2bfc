#include "fp16/vector/gemm_lanes.h"
#include "fp16/vector/lanes_avx512.h"

namespace fp16::detail {

constinit const TileKernels avx512_tile_kernels = tile_kernels<Avx512Floats, Avx512Doubles>();

}  // namespace fp16::detail
