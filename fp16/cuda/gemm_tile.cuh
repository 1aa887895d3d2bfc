#pragma once
/// What the tiled matrix products have in common: a block makes one tile of D, and its operands go through
/// shared memory a few of k at a time.

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fp16/cuda/gemm.h"
#include "fp16/cuda/mma.cuh"
#include "fp16/formats.h"

namespace fp16::cuda {

struct GemmShape {
  unsigned m, n, k;
};

/// The accumulators and outputs of the tensor-core kernels, as types of what is stored.
struct GemmBinary32 {
  using Accumulator = float;
  using Output = float;
};
struct GemmBinary32Rounded {
  using Accumulator = float;
  using Output = std::uint16_t;
};
struct GemmBinary16 {
  using Accumulator = std::uint16_t;
  using Output = std::uint16_t;
};

/// A row-major matrix without gaps.
template <typename Value>
struct GemmMatrix {
  Value* values;
  unsigned rows;
  unsigned columns;

  __device__ Value* at(unsigned row, unsigned column) const {
    return values + (std::size_t{row} * columns + column);
  }
};

/// Neighbours in a row, loaded or stored at once.
template <typename Value, unsigned count>
struct alignas(count * sizeof(Value)) GemmRun {
  Value values[count];
};

/// What lies outside is +0. `column` is a multiple of count, so that all runs of a matrix whose rows are
/// whole runs are aligned and either inside or outside.
template <unsigned count, typename Value>
__device__ GemmRun<Value, count> load_run(const GemmMatrix<const Value>& matrix, unsigned row,
                                          unsigned column) {
  GemmRun<Value, count> run{};
  if (row >= matrix.rows) return run;
  if (matrix.columns % count == 0) {
    if (column < matrix.columns)
      run = *reinterpret_cast<const GemmRun<Value, count>*>(matrix.at(row, column));
    return run;
  }
#pragma unroll
  for (unsigned i = 0; i < count; ++i) {
    if (column + i < matrix.columns) run.values[i] = *matrix.at(row, column + i);
  }
  return run;
}

/// What lies outside is left out.
template <unsigned count, typename Value>
__device__ void store_run(const GemmMatrix<Value>& matrix, unsigned row, unsigned column,
                          const GemmRun<Value, count>& run) {
  if (row >= matrix.rows) return;
  if (matrix.columns % count == 0) {
    if (column < matrix.columns) *reinterpret_cast<GemmRun<Value, count>*>(matrix.at(row, column)) = run;
    return;
  }
#pragma unroll
  for (unsigned i = 0; i < count; ++i) {
    if (column + i < matrix.columns) *matrix.at(row, column + i) = run.values[i];
  }
}

/// An accumulator as an output, rounded at most once.
template <typename Output>
__device__ Output gemm_output(float sum) {
  if constexpr (std::is_same_v<Output, float>) {
    return sum;
  } else {
    return __half_as_ushort(__float2half_rn(sum));
  }
}

/// A lane's registers of a 16 x 8 part of D: those of mma.m16n8k16 and, per warp and 8 columns, of wgmma.
template <typename Accumulator>
struct GemmFragment;

template <>
struct GemmFragment<float> {
  using Register = float;
  static constexpr unsigned registers = 4;

  template <typename Output>
  __device__ static GemmRun<Output, 2> pair(const float* sums, int half) {
    return {{gemm_output<Output>(sums[2 * half]), gemm_output<Output>(sums[2 * half + 1])}};
  }
};

template <>
struct GemmFragment<std::uint16_t> {
  using Register = std::uint32_t;
  static constexpr unsigned registers = 2;

  template <typename Output>
  __device__ static GemmRun<Output, 2> pair(const std::uint32_t* sums, int half) {
    return {{static_cast<Output>(sums[half]), static_cast<Output>(sums[half] >> 16)}};
  }
};

/// `row` and `column` are those of the fragment's first element.
template <typename Result>
__device__ void store_fragment(const GemmMatrix<typename Result::Output>& d, unsigned row, unsigned column,
                               const typename GemmFragment<typename Result::Accumulator>::Register* sums) {
  using Fragment = GemmFragment<typename Result::Accumulator>;
  const MmaLane lane;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    store_run<2>(d, row + lane.group + 8 * half, column + lane.pair,
                 Fragment::template pair<typename Result::Output>(sums, half));
}

inline __device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Eight codes.
inline constexpr unsigned chunk_codes = 8;

/// Where chunk `chunk` of a row of shared memory lies, by exchanging the chunks of a row among each other:
/// the same chunk of eight consecutive rows, which is what ldmatrix and wgmma read at once, is then in eight
/// different groups of banks. With 8 chunks a row this is wgmma's 128-byte swizzle.
template <unsigned chunks_per_row>
__device__ unsigned swizzled_chunk(unsigned row, unsigned chunk) {
  static_assert(chunks_per_row == 4 || chunks_per_row % 8 == 0);
  return chunk ^ (chunks_per_row == 4 ? row / 2 % 4 : row % 8);
}

/// The place of a chunk in a tile of shared memory, in codes.
template <unsigned chunks_per_row>
__device__ unsigned chunk_offset(unsigned row, unsigned chunk) {
  return (row * chunks_per_row + swizzled_chunk<chunks_per_row>(row, chunk)) * chunk_codes;
}

/// From a matrix whose rows are whole chunks if `whole_chunks`; +0 where it ends. Arrives by the wait for the
/// group of copies and a barrier.
template <bool whole_chunks>
__device__ void copy_chunk(std::uint16_t* shared, const GemmMatrix<const std::uint16_t>& matrix, unsigned row,
                           unsigned column) {
#if __CUDA_ARCH__ >= 800
  if constexpr (whole_chunks) {
    const bool inside = row < matrix.rows && column < matrix.columns;
    const std::uint16_t* from = matrix.at(inside ? row : 0, inside ? column : 0);
    const int bytes = inside ? 16 : 0;  // the other ones of the 16 become zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(from),
                 "r"(bytes)
                 : "memory");
    return;
  }
#endif
  *reinterpret_cast<GemmRun<std::uint16_t, chunk_codes>*>(shared) =
      load_run<chunk_codes>(matrix, row, column);
}

/// A tile of rows x chunks_per_row chunks by all threads of the block.
template <unsigned rows, unsigned chunks_per_row, unsigned threads, bool whole_chunks>
__device__ void copy_tile(std::uint16_t* shared, const GemmMatrix<const std::uint16_t>& matrix, unsigned row,
                          unsigned column) {
  static_assert(rows * chunks_per_row % threads == 0);
#pragma unroll
  for (unsigned i = 0; i < rows * chunks_per_row / threads; ++i) {
    const unsigned number = i * threads + threadIdx.x;
    const unsigned tile_row = number / chunks_per_row, chunk = number % chunks_per_row;
    copy_chunk<whole_chunks>(shared + chunk_offset<chunks_per_row>(tile_row, chunk), matrix, row + tile_row,
                             column + chunk * chunk_codes);
  }
}

/// Closes a group of this thread's copies.
inline __device__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most the youngest `pending` groups of this thread's copies are still under way.
template <int pending>
__device__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

/// The first element of a block's tile.
struct GemmTileOrigin {
  unsigned row;
  unsigned column;
};

constexpr unsigned divide_up(unsigned dividend, unsigned divisor) {
  return (dividend + divisor - 1) / divisor;
}

/// Numbers tiles such that blocks that run at the same time share operands in the L2 cache: down eight rows
/// of tiles, then the next column.
template <unsigned tile_m, unsigned tile_n>
__device__ GemmTileOrigin tile_of_block(const GemmShape& shape) {
  constexpr unsigned band = 8;
  const unsigned rows = divide_up(shape.m, tile_m), columns = divide_up(shape.n, tile_n);
  const unsigned first = blockIdx.x / (band * columns) * band, in_band = blockIdx.x % (band * columns);
  const unsigned height = min(band, rows - first);
  return {(first + in_band % height) * tile_m, in_band / height * tile_n};
}

/// How a kernel is launched: a block for each tile. Its parameters are a GemmShape and the addresses of A, B
/// and D.
struct GemmLaunch {
  const void* kernel;
  unsigned tile_m;
  unsigned tile_n;
  unsigned threads;
  unsigned dynamic_shared_bytes = 0;
  int target = 75;  ///< the code must be for this, or for the device if that is older
};

/// kernel<Result, whole_chunks>() for the row and the sizes.
template <typename Kernels>
const void* choose_gemm_kernel(const GemmKernel& kernel, const GemmArguments& arguments) {
  const bool whole_chunks = arguments.k % chunk_codes == 0 && arguments.n % chunk_codes == 0;
  const auto choose = [&]<typename Result>() {
    return whole_chunks ? Kernels::template kernel<Result, true>()
                        : Kernels::template kernel<Result, false>();
  };
  if (kernel.accumulator == binary16) return choose.template operator()<GemmBinary16>();
  if (kernel.output == binary16) return choose.template operator()<GemmBinary32Rounded>();
  return choose.template operator()<GemmBinary32>();
}

// One for each file.
GemmLaunch gemm_fma_chain_launch(const GemmKernel& kernel, const GemmArguments& arguments);
GemmLaunch gemm_wmma_launch(const GemmKernel& kernel, const GemmArguments& arguments);
GemmLaunch gemm_mma_sync_launch(const GemmKernel& kernel, const GemmArguments& arguments);
GemmLaunch gemm_wgmma_launch(const GemmKernel& kernel, const GemmArguments& arguments);

}  // namespace fp16::cuda
