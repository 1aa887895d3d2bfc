#include "experiments/gpu/probes/intrinsics.h"
#include "experiments/gpu/probes/thread_memory.cuh"
#include "experiments/gpu/probes/traversal.cuh"

namespace experiments::probes {

using namespace fp16::ops;

namespace {

struct native___half_as_short {
  __device__ __half operator()(__half a) const {
    return __ushort_as_half(static_cast<unsigned short>(__half_as_short(a)));
  }
};
struct native___half_as_ushort {
  __device__ unsigned short operator()(__half a) const { return __half_as_ushort(a); }
};
struct native___short_as_half {
  __device__ __half operator()(__half a) const {
    return __short_as_half(static_cast<short>(__half_as_ushort(a)));
  }
};
struct native___ushort_as_half {
  __device__ __half operator()(__half a) const { return __ushort_as_half(__half_as_ushort(a)); }
};

using Lanes = std::array<int, 2>;

/// A function of one half2 whose answer's numbers come from the lanes given.
#define FP16_NATIVE_REARRANGEMENT(function, first, second)              \
  struct native_##function {                                            \
    static constexpr Lanes lanes{first, second};                        \
    __device__ auto operator()(__half2 a) const { return function(a); } \
  };

FP16_NATIVE_REARRANGEMENT(__low2half, 0, -1)
FP16_NATIVE_REARRANGEMENT(__high2half, 1, -1)
FP16_NATIVE_REARRANGEMENT(__low2half2, 0, 0)
FP16_NATIVE_REARRANGEMENT(__high2half2, 1, 1)
FP16_NATIVE_REARRANGEMENT(__lowhigh2highlow, 1, 0)
FP16_NATIVE_REARRANGEMENT(__low2float, 0, -1)
FP16_NATIVE_REARRANGEMENT(__high2float, 1, -1)

struct native___half2half2 {
  static constexpr Lanes lanes{0, 0};
  __device__ __half2 operator()(__half2 a) const { return __half2half2(__low2half(a)); }
};
struct native___halves2half2 {
  __device__ __half2 operator()(__half2 a) const { return __halves2half2(__low2half(a), __high2half(a)); }
};
struct native_make_half2 {
  __device__ __half2 operator()(__half2 a) const { return make_half2(__low2half(a), __high2half(a)); }
};
/// The operands' other numbers must not get into the answer.
struct native___lows2half2 {
  __device__ __half2 operator()(__half2 a) const {
    const __half other = __ushort_as_half(__half_as_ushort(__low2half(a)) ^ 0xffff);
    return __lows2half2(__halves2half2(__low2half(a), other), __halves2half2(__high2half(a), other));
  }
};
struct native___highs2half2 {
  __device__ __half2 operator()(__half2 a) const {
    const __half other = __ushort_as_half(__half_as_ushort(__low2half(a)) ^ 0xffff);
    return __highs2half2(__halves2half2(other, __low2half(a)), __halves2half2(other, __high2half(a)));
  }
};
struct native___float2half2_rn {
  static constexpr Lanes lanes{0, 0};
  __device__ __half2 operator()(float2 a) const { return __float2half2_rn(a.x); }
};
struct native___floats2half2_rn {
  __device__ __half2 operator()(float2 a) const { return __floats2half2_rn(a.x, a.y); }
};

/// What loads read: at each code it and, in the upper half, the code that a packed call has beside it.
__device__ std::uint32_t all_codes[65536];

__global__ void __launch_bounds__(threads_per_block) fill_memory() {
  const std::uint32_t code = blockIdx.x * threads_per_block + threadIdx.x;
  all_codes[code] = static_cast<std::uint32_t>(partner(code, 16)) << 16 | code;
}

#define FP16_NATIVE_LOAD(function)                                                       \
  struct native_##function {                                                             \
    __device__ __half operator()(__half a) const {                                       \
      return function(reinterpret_cast<const __half*>(&all_codes[__half_as_ushort(a)])); \
    }                                                                                    \
  };                                                                                     \
  struct native_##function##_half2 {                                                     \
    __device__ __half2 operator()(__half2 a) const {                                     \
      const unsigned short code = __half_as_ushort(__low2half(a));                       \
      return function(reinterpret_cast<const __half2*>(&all_codes[code]));               \
    }                                                                                    \
  };

FP16_NATIVE_LOAD(__ldg)
FP16_NATIVE_LOAD(__ldcg)
FP16_NATIVE_LOAD(__ldca)
FP16_NATIVE_LOAD(__ldcs)
FP16_NATIVE_LOAD(__ldlu)
FP16_NATIVE_LOAD(__ldcv)

#define FP16_NATIVE_STORE(function)                                 \
  struct native_##function {                                        \
    __device__ CodePair operator()(__half a) const {                \
      HalfOfWord half(global_word());                               \
      half.write(static_cast<std::uint16_t>(~__half_as_ushort(a))); \
      function(half.address(), a);                                  \
      return {half.read(), half.neighbour_change()};                \
    }                                                               \
  };                                                                \
  struct native_##function##_half2 {                                \
    __device__ CodePair operator()(__half2 a) const {               \
      as_volatile(global_word()) = ~word_of(a);                     \
      function(reinterpret_cast<__half2*>(global_word()), a);       \
      const std::uint32_t stored = as_volatile(global_word());      \
      return {stored & 0xffff, stored >> 16};                       \
    }                                                               \
  };

FP16_NATIVE_STORE(__stwb)
FP16_NATIVE_STORE(__stcg)
FP16_NATIVE_STORE(__stcs)
FP16_NATIVE_STORE(__stwt)

/// `word`, with those bits flipped that `shuffle` changes on the way from the lane `source` to this one. A lane
/// whose source is not there has itself as its source.
template <typename Shuffle>
__device__ std::uint32_t shuffled(std::uint32_t word, int source, int distance, Shuffle shuffle) {
  __shared__ volatile std::uint32_t words[threads_per_block];
  const unsigned present = __activemask();
  const int lane = threadIdx.x % 32;
  const bool has_source = source >= 0 && source < 32 && (present >> source & 1) != 0;
  words[threadIdx.x] = word;
  __syncwarp(present);
  const std::uint32_t received = shuffle(present, has_source ? distance : 0);
  const std::uint32_t sent = words[threadIdx.x - lane + (has_source ? source : lane)];
  __syncwarp(present);
  return word ^ received ^ sent;
}

/// `source`: the lane that `function` with the argument `distance` reads, 0 meaning this one.
#define FP16_NATIVE_SHUFFLE(function, distance, source, argument)                                 \
  struct native_##function {                                                                      \
    __device__ __half operator()(__half a) const {                                                \
      const int lane = threadIdx.x % 32;                                                          \
      const auto shuffle = [&](unsigned present, int by) -> std::uint32_t {                       \
        return __half_as_ushort(function(present, a, argument));                                  \
      };                                                                                          \
      return __ushort_as_half(shuffled(__half_as_ushort(a), source, distance, shuffle) & 0xffff); \
    }                                                                                             \
  };                                                                                              \
  struct native_##function##_half2 {                                                              \
    __device__ __half2 operator()(__half2 a) const {                                              \
      const int lane = threadIdx.x % 32;                                                          \
      const auto shuffle = [&](unsigned present, int by) -> std::uint32_t {                       \
        return word_of(function(present, a, argument));                                           \
      };                                                                                          \
      return pair_of(shuffled(word_of(a), source, distance, shuffle));                            \
    }                                                                                             \
  };

FP16_NATIVE_SHUFFLE(__shfl_sync, 7, (lane + 7) % 32, (lane + by) % 32)
FP16_NATIVE_SHUFFLE(__shfl_up_sync, 3, lane - 3, by)
FP16_NATIVE_SHUFFLE(__shfl_down_sync, 3, lane + 3, by)
FP16_NATIVE_SHUFFLE(__shfl_xor_sync, 5, lane ^ 5, by)

}  // namespace

std::vector<SweepKernels> move_kernels() {
  std::vector<SweepKernels> kernels{FP16_MOVE_INTRINSICS(FP16_SWEEP_KERNELS)};
  for (SweepKernels& each : kernels) each.prepare = reinterpret_cast<const void*>(&fill_memory);
  return kernels;
}

}  // namespace experiments::probes
