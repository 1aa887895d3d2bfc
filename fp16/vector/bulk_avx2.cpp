#include "fp16/vector/bulk_lanes.h"
#include "fp16/vector/lanes_avx2.h"

namespace fp16::detail {

constinit const BulkKernels avx2_bulk_kernels = bulk_kernels<Avx2Halves, Avx2Bytes>();

}  // namespace fp16::detail
