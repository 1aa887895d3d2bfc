#pragma once
/// The matrix instructions of a warpgroup (wgmma.mma_async, PTX ISA "Asynchronous Warpgroup Level Matrix
/// Instructions") with binary16 operands. They exist on compute capability 9.0 alone and need the target
/// sm_90a; code for another target links and stops at the first fence, a launch failure.
///
/// A warpgroup is four warps of consecutive threads, the first one's number a multiple of 128.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fp16/cuda/device.h"
#include "fp16/cuda/mma.cuh"

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

}  // namespace fp16::cuda
