#include "experiments/gpu/probes/intrinsics.h"
#include "experiments/gpu/probes/thread_memory.cuh"
#include "experiments/gpu/probes/traversal.cuh"

namespace experiments::probes {

using namespace fp16::ops;

namespace {

/// What is in memory afterwards, and in the upper half what was returned.
__device__ CodePair memory_sums(CodePair after, CodePair before) {
  return {after[0] | before[0] << 16, after[1] | before[1] << 16};
}

template <std::uint32_t* (*word)()>
struct AtomicAdd {
  __device__ CodePair operator()(__half memory, __half a) const {
    HalfOfWord half(word());
    half.write(__half_as_ushort(memory));
    const __half before = atomicAdd(half.address(), a);
    return memory_sums({half.read(), half.neighbour_change()}, codes_of(before));
  }
  __device__ CodePair operator()(__half2 memory, __half2 a) const {
    as_volatile(word()) = word_of(memory);
    const __half2 before = atomicAdd(reinterpret_cast<__half2*>(word()), a);
    const std::uint32_t after = as_volatile(word());
    return memory_sums({after & 0xffff, after >> 16}, codes_of(before));
  }
};

struct native_atomicAdd_global : AtomicAdd<global_word> {};
struct native_atomicAdd_global_half2 : AtomicAdd<global_word> {};
struct native_atomicAdd_shared : AtomicAdd<shared_word> {};
struct native_atomicAdd_shared_half2 : AtomicAdd<shared_word> {};

struct native_atomicAdd_global_unread {
  __device__ CodePair operator()(__half memory, __half a) const {
    HalfOfWord half(global_word());
    half.write(__half_as_ushort(memory));
    atomicAdd(half.address(), a);
    return {half.read(), half.neighbour_change()};
  }
};
struct native_atomicAdd_global_unread_half2 {
  __device__ CodePair operator()(__half2 memory, __half2 a) const {
    as_volatile(global_word()) = word_of(memory);
    atomicAdd(reinterpret_cast<__half2*>(global_word()), a);
    const std::uint32_t after = as_volatile(global_word());
    return {after & 0xffff, after >> 16};
  }
};

}  // namespace

std::vector<SweepKernels> atomic_kernels() {
  return {FP16_ATOMIC_INTRINSICS(FP16_SWEEP_KERNELS)};
}

}  // namespace experiments::probes
