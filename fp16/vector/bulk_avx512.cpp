#include "fp16/vector/bulk_lanes.h"
#include "fp16/vector/lanes_avx512.h"

namespace fp16::detail {

constinit const BulkKernels avx512_bulk_kernels = bulk_kernels<Avx512Halves, Avx512Bytes, Avx2Halves>();

}  // namespace fp16::detail
