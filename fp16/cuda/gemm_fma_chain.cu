#include <cuda_fp16.h>

#include <stdexcept>

#include "fp16/cuda/kernels.h"
#include "fp16/cuda/runtime.cuh"

namespace fp16::cuda {

namespace {

struct Sizes {
  unsigned rows;
  unsigned columns;
  unsigned depth;
};

constexpr unsigned tile = 16;

/// A thread has two neighbouring columns of a row; the second may lie outside.
__global__ void __launch_bounds__(tile* tile)
    fma_chain(Sizes sizes, const __half* a, const __half* b, __half* c) {
  const unsigned row = blockIdx.y * tile + threadIdx.y;
  const unsigned column = 2 * (blockIdx.x * tile + threadIdx.x);
  if (row >= sizes.rows || column >= sizes.columns) return;
  const bool two = column + 1 < sizes.columns;
  const __half zero = __ushort_as_half(0);
  __half2 sums = __halves2half2(zero, zero);
  for (unsigned k = 0; k < sizes.depth; ++k) {
    const std::size_t at = std::size_t{k} * sizes.columns + column;
    sums = __hfma2(__half2half2(a[std::size_t{row} * sizes.depth + k]),
                   __halves2half2(b[at], two ? b[at + 1] : zero), sums);
  }
  const std::size_t at = std::size_t{row} * sizes.columns + column;
  c[at] = __low2half(sums);
  if (two) c[at + 1] = __high2half(sums);
}

}  // namespace

void gemm_fma_chain(const HalfProduct& product) {
  if (product.a.size() != product.rows * product.depth ||
      product.b.size() != product.depth * product.columns ||
      product.c.size() != product.rows * product.columns)
    throw std::invalid_argument(
        "matrix product: the arrays do not have the sizes of rows, columns and depth");
  if (product.c.empty()) return;
  DeviceArray<std::uint16_t> a(product.a), b(product.b), c(product.c.size());
  Sizes sizes{static_cast<unsigned>(product.rows), static_cast<unsigned>(product.columns),
              static_cast<unsigned>(product.depth)};
  std::uint16_t *a_data = a.data(), *b_data = b.data(), *c_data = c.data();
  const dim3 blocks((sizes.columns + 2 * tile - 1) / (2 * tile), (sizes.rows + tile - 1) / tile);
  launch(reinterpret_cast<const void*>(&fma_chain), blocks, dim3(tile, tile),
         {&sizes, &a_data, &b_data, &c_data});
  c.copy_to(product.c);
}

}  // namespace fp16::cuda
