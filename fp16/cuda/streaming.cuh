#pragma once
/// How kernels that stream through memory go over an array.

#include <cstddef>
#include <cstdint>

namespace fp16::cuda {

/// What a thread moves by one access, of 16 bytes or less: neighbouring threads' packs then make whole sectors of
/// memory.
template <typename Value, unsigned count = 16 / sizeof(Value)>
struct alignas(count * sizeof(Value)) Pack {
  static constexpr unsigned size = count;

  Value values[size];
};

inline __device__ bool is_pack_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

/// A thread's share of an array: every `stride`-th from the `first` on.
struct Share {
  std::size_t first;
  std::size_t stride;
};

/// Calls visit(pack, its index) for a share of the packs. Several are loaded before the first is visited,
/// because the memory is busy only while 64 bytes or so are under way for each thread.
template <typename Pack, typename Visit>
__device__ void for_each_pack(const Pack* packs, std::size_t count, Share share, Visit visit) {
  constexpr unsigned under_way = 64 / sizeof(Pack);
  for (std::size_t first = share.first; first < count; first += under_way * share.stride) {
    Pack loaded[under_way];
#pragma unroll
    for (unsigned i = 0; i < under_way; ++i) {
      if (first + i * share.stride < count) loaded[i] = packs[first + i * share.stride];
    }
#pragma unroll
    for (unsigned i = 0; i < under_way; ++i) {
      if (first + i * share.stride < count) visit(loaded[i], first + i * share.stride);
    }
  }
}

}  // namespace fp16::cuda
