#include "fp16/vector/bulk_lanes.h"

namespace fp16::detail {

const BulkKernels avx2_f16c_bulk_kernels = f16c_kernels<Avx2Lanes>();

}  // namespace fp16::detail
