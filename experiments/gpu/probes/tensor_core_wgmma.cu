// For sm_90a; see fp16/cuda/wgmma.cuh.
#include <cstdint>

#include "experiments/gpu/probes/mma_m16n8.cuh"
#include "experiments/gpu/probes/tensor_core.cuh"
#include "fp16/cuda/wgmma.cuh"

namespace experiments::probes {

namespace {

/// Both operands of m64n8k16 in core matrices, k-major: the plainest layout there is.
struct WgmmaCoreMatrices {
  alignas(128) std::uint16_t a[64 * 16];
  alignas(128) std::uint16_t b[16 * 8];

  static constexpr std::uint32_t core_matrix_bytes = 8 * 16;

  /// From row-major tiles, by 128 threads.
  __device__ void fill(const std::uint16_t* a_tile, const std::uint16_t* b_tile) {
    for (unsigned i = threadIdx.x; i < 64 * 16; i += 128) a[offset(i / 16, i % 16)] = a_tile[i];
    for (unsigned i = threadIdx.x; i < 16 * 8; i += 128) b[offset(i % 8, i / 8)] = b_tile[i];
  }
  __device__ std::uint64_t a_descriptor() const { return descriptor(a); }
  __device__ std::uint64_t b_descriptor() const { return descriptor(b); }

 private:
  /// `row` is that of a or the column of b.
  __device__ static unsigned offset(unsigned row, unsigned k) {
    return (row / 8 * 2 + k / 8) * 64 + row % 8 * 8 + k % 8;
  }
  __device__ static std::uint64_t descriptor(const std::uint16_t* codes) {
    return cuda::WgmmaOperand{.start = codes,
                              .leading = core_matrix_bytes,
                              .stride = 2 * core_matrix_bytes,
                              .swizzle = cuda::WgmmaSwizzle::none}
        .descriptor();
  }
};

/// A warp's registers of a, 16 rows of it by 16: those of mma.m16n8k16.
struct WgmmaRegistersA {
  std::uint32_t values[4];

  __device__ explicit WgmmaRegistersA(const std::uint16_t* a_tile) {
    const cuda::MmaLane lane;
    const std::uint16_t* rows = a_tile + threadIdx.x / 32 * 16 * 16;
    for (int i = 0; i < 4; ++i)
      values[i] = two_codes(rows + (lane.group + i % 2 * 8) * 16 + lane.pair + i / 2 * 8, 1);
  }
};

/// d = a * b + d for m64n8k16; from a warp's registers of d, which are those of mma.m16n8k16.
__device__ void wgmma_m64n8k16(const WgmmaCoreMatrices& in, MmaAccumulator<float>& sums) {
#ifdef FP16_HAS_WGMMA
  float* d = sums.values;
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(in.a_descriptor()), "l"(in.b_descriptor())
               : "memory");
#endif
}
__device__ void wgmma_m64n8k16(const WgmmaCoreMatrices& in, MmaAccumulator<std::uint16_t>& sums) {
#ifdef FP16_HAS_WGMMA
  std::uint32_t* d = sums.values;
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, 1, 1, 1, 0, 0;"
               : "+r"(d[0]), "+r"(d[1])
               : "l"(in.a_descriptor()), "l"(in.b_descriptor())
               : "memory");
#endif
}
__device__ void wgmma_m64n8k16(const WgmmaRegistersA& in, std::uint64_t b, MmaAccumulator<float>& sums) {
#ifdef FP16_HAS_WGMMA
  const std::uint32_t* a = in.values;
  float* d = sums.values;
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
      : "memory");
#endif
}
__device__ void wgmma_m64n8k16(const WgmmaRegistersA& in, std::uint64_t b,
                               MmaAccumulator<std::uint16_t>& sums) {
#ifdef FP16_HAS_WGMMA
  const std::uint32_t* a = in.values;
  std::uint32_t* d = sums.values;
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, %6, 1, 1, 1, 0;"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
               : "memory");
#endif
}

/// One wgmma of a tile; see the four structs below.
template <typename Value, bool a_in_registers>
struct WgmmaM64n8k16 {
  static constexpr int rows = 64, columns = 8, depth = 16, threads = 128;
  using Accumulator = Value;

  /// d = a * b + c by all 128 threads of a block: row-major tiles in shared memory, a 64 x 16, b 16 x 8, c
  /// and d 64 x 8; d may be c. A barrier stands before and behind.
  __device__ static void step(const std::uint16_t* a, const std::uint16_t* b, const Accumulator* c,
                              Accumulator* d) {
    __shared__ WgmmaCoreMatrices operands;
    const unsigned first_of_warp = threadIdx.x / 32 * 16 * columns;
    __syncthreads();
    operands.fill(a, b);
    MmaAccumulator<Accumulator> sums(c + first_of_warp);
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    cuda::hold_registers(sums.values);
    if constexpr (a_in_registers) {
      WgmmaRegistersA a_registers(a);
      cuda::hold_registers(a_registers.values);
      cuda::wgmma_fence();
      wgmma_m64n8k16(a_registers, operands.b_descriptor(), sums);
    } else {
      cuda::wgmma_fence();
      wgmma_m64n8k16(operands, sums);
    }
    cuda::wgmma_commit();
    cuda::wgmma_wait<0>();
    cuda::hold_registers(sums.values);
    sums.store(d + first_of_warp);
    __syncthreads();
  }
};

/// Independent tiles for one instruction each, with both operands in shared memory or (ra) a in registers.
struct wgmma_m64n8k16_binary32 : WgmmaM64n8k16<float, false> {};
struct wgmma_m64n8k16_binary16 : WgmmaM64n8k16<std::uint16_t, false> {};
struct wgmma_m64n8k16_ra_binary32 : WgmmaM64n8k16<float, true> {};
struct wgmma_m64n8k16_ra_binary16 : WgmmaM64n8k16<std::uint16_t, true> {};

}  // namespace

FP16_TENSOR_CORE_KERNELS(wgmma_m64n8k16, cuda::require_wgmma)
FP16_TENSOR_CORE_KERNELS(wgmma_m64n8k16_ra, cuda::require_wgmma)

}  // namespace experiments::probes
