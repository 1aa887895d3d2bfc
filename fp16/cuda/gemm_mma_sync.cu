/// The matrix product by mma.sync.m16n8k16: a block of four warps makes a tile of 128 x 128, a warp 64 x 64
/// of it. The operands of 32 of k are a stage; cp.async fills three stages ahead of the one that is
/// multiplied.
///
/// A stage costs 16 KiB of loads for 2^20 floating-point operations, 64 a byte; for 32 mma a warp reads 4 KiB
/// of shared memory by 8 ldmatrix.

#include "fp16/cuda/gemm_tile.cuh"

namespace fp16::cuda {

namespace {

constexpr unsigned tile_m = 128, tile_n = 128, tile_k = 32;
constexpr unsigned stages = 4;
constexpr unsigned threads = 128;
constexpr unsigned step_k = 16;               // of an instruction
constexpr unsigned warp_m = 64, warp_n = 64;  // of a warp
constexpr unsigned fragments_m = warp_m / 16, fragments_n = warp_n / 8;
constexpr unsigned a_chunks = tile_k / chunk_codes, b_chunks = tile_n / chunk_codes;

struct Stage {
  std::uint16_t a[tile_m * tile_k];
  std::uint16_t b[tile_k * tile_n];
};
static_assert(stages * sizeof(Stage) == 64 * 1024, "what a block may have on compute capability 7.5");

/// Four 8 x 8 matrices of codes; lanes 8i ... 8i + 7 give the addresses of the rows of the i-th.
__device__ void load_matrices(std::uint32_t (&registers)[4], const std::uint16_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(shared_address(row))
               : "memory");
}
/// Likewise, and each transposed.
__device__ void load_transposed_matrices(std::uint32_t (&registers)[4], const std::uint16_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(shared_address(row))
               : "memory");
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/// d += a * b, a 16 x 16, b 16 x 8.
__device__ void multiply_add(float* d, const std::uint32_t (&a)[4], const std::uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply_add(std::uint32_t* d, const std::uint32_t (&a)[4], const std::uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

__device__ void multiply_add_k8(float* d, const std::uint32_t* a, std::uint32_t b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}
__device__ void multiply_add_k8(std::uint32_t* d, const std::uint32_t* a, std::uint32_t b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(b));
}

/// The registers of m16n8k16 are those of two m16n8k8, low k first.
template <typename Register>
__device__ void multiply_add(Register* d, const std::uint32_t (&a)[4], const std::uint32_t* b) {
  multiply_add_k8(d, a, b[0]);
  multiply_add_k8(d, a + 2, b[1]);
}

#endif

/// What a warp has accumulated.
template <typename Accumulator>
struct WarpTile {
  using Fragment = GemmFragment<Accumulator>;

  unsigned row;  ///< of the warp's first element in the block's tile
  unsigned column;
  typename Fragment::Register sums[fragments_m][fragments_n][Fragment::registers] = {};

  __device__ WarpTile()
      : row(threadIdx.x / 32 / (tile_n / warp_n) * warp_m),
        column(threadIdx.x / 32 % (tile_n / warp_n) * warp_n) {}

  /// The stage's first `steps` times 16 of k.
  template <unsigned steps>
  __device__ void multiply(const Stage& stage) {
    // A lane's row among the 16 of two matrices, and which pair of two it is in.
    const unsigned lane_row = threadIdx.x % 16, lane_chunk = threadIdx.x % 32 / 16;
#pragma unroll
    for (unsigned step = 0; step < steps; ++step) {
      std::uint32_t a[fragments_m][4], b[fragments_n / 2][4];
#pragma unroll
      for (unsigned i = 0; i < fragments_m; ++i)
        load_matrices(a[i], stage.a + chunk_offset<a_chunks>(row + 16 * i + lane_row, 2 * step + lane_chunk));
#pragma unroll
      for (unsigned j = 0; j < fragments_n / 2; ++j)
        load_transposed_matrices(b[j], stage.b + chunk_offset<b_chunks>(step_k * step + lane_row,
                                                                        column / 8 + 2 * j + lane_chunk));
#pragma unroll
      for (unsigned i = 0; i < fragments_m; ++i) {
#pragma unroll
        for (unsigned j = 0; j < fragments_n; ++j) multiply_add(sums[i][j], a[i], b[j / 2] + j % 2 * 2);
      }
    }
  }
};

template <typename Result, bool whole_chunks>
__global__ void __launch_bounds__(threads, 2)
    gemm_mma_sync(GemmShape shape, const std::uint16_t* a_codes, const std::uint16_t* b_codes,
                  typename Result::Output* outputs) {
  extern __shared__ uint4 dynamic_shared[];
  const auto shared = reinterpret_cast<Stage*>(dynamic_shared);
  const GemmMatrix<const std::uint16_t> a{a_codes, shape.m, shape.k}, b{b_codes, shape.k, shape.n};
  const GemmTileOrigin origin = tile_of_block<tile_m, tile_n>(shape);

  const unsigned steps = divide_up(shape.k, step_k);
  const unsigned count = divide_up(steps, tile_k / step_k);  // of stages
  const auto fill = [&](unsigned number) {
    if (number < count) {
      Stage& stage = shared[number % stages];
      copy_tile<tile_m, a_chunks, threads, whole_chunks>(stage.a, a, origin.row, number * tile_k);
      copy_tile<tile_k, b_chunks, threads, whole_chunks>(stage.b, b, number * tile_k, origin.column);
    }
    commit_copies();  // also an empty group, so that a number of groups is one of stages
  };
  // Behind the barrier this stage has arrived for all threads and all are done with the one before, whose
  // place is filled again.
  const auto next_stage = [&](unsigned number) -> const Stage& {
    wait_for_copies<stages - 2>();
    __syncthreads();
    fill(number + stages - 1);
    return shared[number % stages];
  };

  for (unsigned number = 0; number < stages - 1; ++number) fill(number);
  WarpTile<typename Result::Accumulator> tile;
  // Not a step more than k needs: one of zeros changes nothing and takes its time.
  for (unsigned number = 0; number < steps / 2; ++number) tile.template multiply<2>(next_stage(number));
  if (steps % 2 != 0) tile.template multiply<1>(next_stage(steps / 2));

  const GemmMatrix<typename Result::Output> d{outputs, shape.m, shape.n};
#pragma unroll
  for (unsigned i = 0; i < fragments_m; ++i) {
#pragma unroll
    for (unsigned j = 0; j < fragments_n; ++j)
      store_fragment<Result>(d, origin.row + tile.row + 16 * i, origin.column + tile.column + 8 * j,
                             tile.sums[i][j]);
  }
}

struct Kernels {
  template <typename Result, bool whole_chunks>
  static const void* kernel() {
    return reinterpret_cast<const void*>(&gemm_mma_sync<Result, whole_chunks>);
  }
};

}  // namespace

GemmLaunch gemm_mma_sync_launch(const GemmKernel& kernel, const GemmArguments& arguments) {
  return {.kernel = choose_gemm_kernel<Kernels>(kernel, arguments),
          .tile_m = tile_m,
          .tile_n = tile_n,
          .threads = threads,
          .dynamic_shared_bytes = stages * sizeof(Stage),
          .target = 80};  // m16n8k8 would add eight products at a time where newer devices add 16
}

}  // namespace fp16::cuda
