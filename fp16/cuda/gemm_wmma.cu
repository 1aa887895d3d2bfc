/// The matrix product by nvcuda::wmma, as one would first write it: a block of four warps makes a tile of 64
/// x 64, a warp 32 x 32 of it. 16 of k at a time are copied to shared memory and multiplied.
///
/// wmma says nothing of the order within its 16 of k. That it is that of mma.sync.m16n8k16 is what ptxas
/// makes of it (two HMMA.16816, for either half of the columns), not a promise.

#include <mma.h>

#include "fp16/cuda/gemm_tile.cuh"

namespace fp16::cuda {

namespace {

namespace wmma = nvcuda::wmma;

constexpr unsigned tile_m = 64, tile_n = 64, tile_k = 16;
constexpr unsigned threads = 128;
constexpr unsigned warp_m = 32, warp_n = 32;  // of a warp
constexpr unsigned padding = chunk_codes;     // so that rows begin in different banks

/// Rows of whole chunks of a tile by all threads.
template <unsigned rows, unsigned columns>
__device__ void copy_to_shared(std::uint16_t (&shared)[rows][columns + padding],
                               const GemmMatrix<const std::uint16_t>& matrix, unsigned row, unsigned column) {
  constexpr unsigned row_chunks = columns / chunk_codes;
  for (unsigned i = threadIdx.x; i < rows * row_chunks; i += threads) {
    const unsigned tile_row = i / row_chunks, tile_column = i % row_chunks * chunk_codes;
    *reinterpret_cast<GemmRun<std::uint16_t, chunk_codes>*>(&shared[tile_row][tile_column]) =
        load_run<chunk_codes>(matrix, row + tile_row, column + tile_column);
  }
}

__device__ const __half* as_halves(const std::uint16_t* codes) {
  return reinterpret_cast<const __half*>(codes);
}

/// An accumulator as wmma stores it.
template <typename Output>
__device__ Output output_of(float sum) {
  return gemm_output<Output>(sum);
}
template <typename Output>
__device__ Output output_of(__half sum) {
  return __half_as_ushort(sum);
}

template <typename Result>
__global__ void __launch_bounds__(threads)
    gemm_wmma(GemmShape shape, const std::uint16_t* a_codes, const std::uint16_t* b_codes,
              typename Result::Output* outputs) {
  using Output = typename Result::Output;
  using Sum = std::conditional_t<std::is_same_v<typename Result::Accumulator, float>, float, __half>;
  __shared__ alignas(32) std::uint16_t a_shared[tile_m][tile_k + padding];
  __shared__ alignas(32) std::uint16_t b_shared[tile_k][tile_n + padding];
  __shared__ alignas(32) Sum d_shared[tile_m][tile_n + padding];
  const GemmMatrix<const std::uint16_t> a{a_codes, shape.m, shape.k}, b{b_codes, shape.k, shape.n};
  const GemmTileOrigin origin = tile_of_block<tile_m, tile_n>(shape);
  const unsigned warp_row = threadIdx.x / 32 / 2 * warp_m, warp_column = threadIdx.x / 32 % 2 * warp_n;

  wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sums[2][2];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, Sum{});
  }
  for (unsigned k = 0; k < shape.k; k += tile_k) {
    copy_to_shared<tile_m, tile_k>(a_shared, a, origin.row, k);
    copy_to_shared<tile_k, tile_n>(b_shared, b, k, origin.column);
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a_parts[2];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b_parts[2];
    for (unsigned i = 0; i < 2; ++i) {
      wmma::load_matrix_sync(a_parts[i], as_halves(a_shared[warp_row + 16 * i]), tile_k + padding);
      wmma::load_matrix_sync(b_parts[i], as_halves(&b_shared[0][warp_column + 16 * i]), tile_n + padding);
    }
    for (unsigned i = 0; i < 2; ++i) {
      for (unsigned j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], a_parts[i], b_parts[j], sums[i][j]);
    }
    __syncthreads();
  }

  for (unsigned i = 0; i < 2; ++i) {
    for (unsigned j = 0; j < 2; ++j)
      wmma::store_matrix_sync(&d_shared[warp_row + 16 * i][warp_column + 16 * j], sums[i][j],
                              tile_n + padding, wmma::mem_row_major);
  }
  __syncthreads();
  const GemmMatrix<Output> d{outputs, shape.m, shape.n};
  for (unsigned i = threadIdx.x; i < tile_m * tile_n / 2; i += threads) {
    const unsigned row = i / (tile_n / 2), column = i % (tile_n / 2) * 2;
    const Sum* pair = &d_shared[row][column];
    store_run<2>(d, origin.row + row, origin.column + column,
                 GemmRun<Output, 2>{{output_of<Output>(pair[0]), output_of<Output>(pair[1])}});
  }
}

struct Kernels {
  template <typename Result, bool>
  static const void* kernel() {
    return reinterpret_cast<const void*>(&gemm_wmma<Result>);
  }
};

}  // namespace

GemmLaunch gemm_wmma_launch(const GemmKernel& kernel, const GemmArguments& arguments) {
  return {.kernel = choose_gemm_kernel<Kernels>(kernel, arguments),
          .tile_m = tile_m,
          .tile_n = tile_n,
          .threads = threads};
}

}  // namespace fp16::cuda
