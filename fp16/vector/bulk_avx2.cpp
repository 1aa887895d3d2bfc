#include "fp16/vector/bulk_lanes.h"

namespace fp16::detail {

constinit const BulkKernels avx2_bulk_kernels = bulk_kernels<Avx2Halves>();

}  // namespace fp16::detail
