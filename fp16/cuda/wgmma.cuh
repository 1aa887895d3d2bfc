#pragma once
/// The matrix instructions of a warpgroup (wgmma.mma_async, PTX ISA "Asynchronous Warpgroup Level Matrix
/// Instructions") with binary16 operands. They exist on compute capability 9.0 alone and need the target
/// sm_90a; code for another target links and stops at the first fence, a launch failure.
///
/// A warpgroup is four warps of consecutive threads, the first one's number a multiple of 128.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fp16/cuda/mma.cuh"
#include "fp16/cuda/sweep.h"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define FP16_HAS_WGMMA
#endif

namespace fp16::cuda {

/// Throws std::runtime_error if the device lacks the instruction or `kernel` was compiled for older ones.
inline void require_wgmma(const void* kernel) {
  if (const int capability = device().compute_capability; capability != 90)
    throw std::runtime_error(
        "wgmma: the instruction exists on compute capability 9.0 alone, the device has " +
        std::to_string(capability / 10) + "." + std::to_string(capability % 10));
  require_compiled_for(kernel, 90);
}

/// Before the first wgmma that reads or writes registers which other instructions have written. Consecutive
/// ones on the same accumulators need none between them.
inline __device__ void wgmma_fence() {
#ifdef FP16_HAS_WGMMA
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  __trap();
#endif
}

/// Closes a group of those issued since the last.
inline __device__ void wgmma_commit() {
#ifdef FP16_HAS_WGMMA
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/// Waits until at most the youngest `pending` groups of this warpgroup are still at work.
template <int pending>
__device__ void wgmma_wait() {
#ifdef FP16_HAS_WGMMA
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#endif
}

/// Keeps the compiler from moving what it does with these registers across this place: to it accumulators have
/// their values as soon as a wgmma is issued. Stands before the fence of the first wgmma that uses them and, for
/// accumulators, behind the wait for the last.
template <typename Register, std::size_t count>
__device__ void hold_registers(Register (&registers)[count]) {
#pragma unroll
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Register, float>) {
      asm volatile("" : "+f"(registers[i])::"memory");
    } else {
      asm volatile("" : "+r"(registers[i])::"memory");
    }
  }
}

/// wgmma reads shared memory through the asynchronous proxy: whoever wrote operands there, by stores or by
/// cp.async that has completed, executes this before the barrier behind which they are used.
inline __device__ void fence_shared_for_wgmma() {
#ifdef FP16_HAS_WGMMA
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// How the 16-byte chunks of an operand lie ("Matrix Descriptor Format", bits 63-62).
enum class WgmmaSwizzle : std::uint64_t {
  none = 0,
  bytes_128 = 1,  ///< in eight rows of 128 bytes, chunk c of row r lies where chunk c ^ r would
};

/// An operand in shared memory, in bytes. What the two offsets mean is "Canonical Layouts" for elements of 16
/// bits, T = 8 of them in a chunk:
///  - k-major, none:      ((8,m),(T,2k)):((1T,SBO),(1,LBO)). Eight rows of a chunk are 128 contiguous bytes,
///    a core matrix; `leading` leads to the next eight of k, `stride` to the next eight rows.
///  - k-major, bytes_128: ((8,m),(T,2k)):((8T,SBO),(1,T)). Rows of 64 of k; `leading` is not used, `stride`
///    leads to the next eight rows. 16 further of k start 32 bytes further.
///  - m/n-major, bytes_128: ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO)). For each k a row of 64 of n; `leading`
///    leads to the next 64 of n, `stride` to the next eight of k.
/// With bytes_128 the pattern of eight rows starts at a multiple of 1024 bytes: the base offset is then 0.
struct WgmmaOperand {
  const void* start;  ///< in shared memory, a multiple of 16
  std::uint32_t leading;
  std::uint32_t stride;
  WgmmaSwizzle swizzle;

  /// The matrix descriptor.
  __device__ std::uint64_t descriptor() const {
    return encode(__cvta_generic_to_shared(start)) | encode(leading) << 16 | encode(stride) << 32 |
           static_cast<std::uint64_t>(swizzle) << 62;
  }

 private:
  __device__ static std::uint64_t encode(std::uint64_t bytes) { return (bytes & 0x3ffff) >> 4; }
};

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
    return WgmmaOperand{.start = codes,
                        .leading = core_matrix_bytes,
                        .stride = 2 * core_matrix_bytes,
                        .swizzle = WgmmaSwizzle::none}
        .descriptor();
  }
};

/// A warp's registers of a, 16 rows of it by 16: those of mma.m16n8k16.
struct WgmmaRegistersA {
  std::uint32_t values[4];

  __device__ explicit WgmmaRegistersA(const std::uint16_t* a_tile) {
    const MmaLane lane;
    const std::uint16_t* rows = a_tile + threadIdx.x / 32 * 16 * 16;
    for (int i = 0; i < 4; ++i)
      values[i] = two_codes(rows + (lane.group + i % 2 * 8) * 16 + lane.pair + i / 2 * 8, 1);
  }
};

namespace detail {

/// d = a * b + d for m64n8k16; from a warp's registers of d, which are those of mma.m16n8k16.
inline __device__ void wgmma_m64n8k16(const WgmmaCoreMatrices& in, MmaAccumulator<float>& sums) {
#ifdef FP16_HAS_WGMMA
  float* d = sums.values;
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(in.a_descriptor()), "l"(in.b_descriptor())
               : "memory");
#endif
}
inline __device__ void wgmma_m64n8k16(const WgmmaCoreMatrices& in, MmaAccumulator<std::uint16_t>& sums) {
#ifdef FP16_HAS_WGMMA
  std::uint32_t* d = sums.values;
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, 1, 1, 1, 0, 0;"
               : "+r"(d[0]), "+r"(d[1])
               : "l"(in.a_descriptor()), "l"(in.b_descriptor())
               : "memory");
#endif
}
inline __device__ void wgmma_m64n8k16(const WgmmaRegistersA& in, std::uint64_t b,
                                      MmaAccumulator<float>& sums) {
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
inline __device__ void wgmma_m64n8k16(const WgmmaRegistersA& in, std::uint64_t b,
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
    fence_shared_for_wgmma();
    __syncthreads();
    hold_registers(sums.values);
    if constexpr (a_in_registers) {
      WgmmaRegistersA a_registers(a);
      hold_registers(a_registers.values);
      wgmma_fence();
      wgmma_m64n8k16(a_registers, operands.b_descriptor(), sums);
    } else {
      wgmma_fence();
      wgmma_m64n8k16(operands, sums);
    }
    wgmma_commit();
    wgmma_wait<0>();
    hold_registers(sums.values);
    sums.store(d + first_of_warp);
    __syncthreads();
  }
};

}  // namespace detail

/// Independent tiles for one instruction each, with both operands in shared memory or (ra) a in registers.
struct wgmma_m64n8k16_binary32 : detail::WgmmaM64n8k16<float, false> {};
struct wgmma_m64n8k16_binary16 : detail::WgmmaM64n8k16<std::uint16_t, false> {};
struct wgmma_m64n8k16_ra_binary32 : detail::WgmmaM64n8k16<float, true> {};
struct wgmma_m64n8k16_ra_binary16 : detail::WgmmaM64n8k16<std::uint16_t, true> {};

}  // namespace fp16::cuda
