#include "fp16/vector/bulk_lanes.h"
#include "fp16/vector/lanes_neon_bytes.h"
#include "fp16/vector/lanes_neon_fp16.h"

namespace fp16::detail {

constinit const BulkKernels neon_fp16_bulk_kernels =
    bulk_kernels<NeonHalves, NeonBytes, NeonHalves, NeonFp16Halves, NeonFp16Halves>();

}  // namespace fp16::detail
