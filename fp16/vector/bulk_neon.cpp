#include "fp16/vector/bulk_lanes.h"
#include "fp16/vector/lanes_neon.h"
#include "fp16/vector/lanes_neon_bytes.h"

namespace fp16::detail {

constinit const BulkKernels neon_bulk_kernels = bulk_kernels<NeonHalves, NeonBytes>();

}  // namespace fp16::detail
