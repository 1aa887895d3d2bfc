#pragma once
/// The rows that multiply matrices, against cuBLAS.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/gpu/gpu_throughput/timed_work.h"
#include "experiments/gpu/vendor/cublas.h"

namespace experiments::gpu_throughput {

/// The edge of the matrices whose rows have targets.
inline constexpr int judged_edge = 4096;

/// Those of fp16::cuda::gemm_kernels(), and one of cuBLAS for each combination of formats among them.
std::vector<std::string> product_row_names();

/// What a row is held against, with a target where `edge` is judged_edge; nothing for cuBLAS's rows and for a name that
/// is none of these.
std::vector<Comparison> product_comparisons(std::string_view name, int edge);

/// D = A B with edge x edge matrices, for those of product_row_names() that are `chosen`; `cublas` is used as long as
/// the group is.
Group product_group(int edge, const std::vector<std::string>& chosen, OpenedCublas& cublas);

}  // namespace experiments::gpu_throughput
