#pragma once
/// A word of memory for each thread of a sweep, for functions that write to memory; each .cu file has its own.

#include <cstdint>

#include "experiments/gpu/probes/traversal.cuh"

namespace experiments::probes {

namespace {

__device__ std::uint32_t global_words[std::size_t{most_blocks} * threads_per_block];

__device__ std::uint32_t* global_word() {
  return &global_words[std::size_t{blockIdx.x} * threads_per_block + threadIdx.x];
}

__device__ std::uint32_t* shared_word() {
  __shared__ std::uint32_t words[threads_per_block];
  return &words[threadIdx.x];
}

/// So that a word is written, and read again, where the program says so.
__device__ volatile std::uint32_t& as_volatile(std::uint32_t* word) {
  return *word;
}

/// One half of a word, and the other one, which nothing should touch. Even threads have the lower half.
class HalfOfWord {
 public:
  __device__ explicit HalfOfWord(std::uint32_t* word) : word_(word), shift_(threadIdx.x % 2 * 16) {}

  __device__ void write(std::uint16_t code) {
    neighbour_ = static_cast<std::uint16_t>(code * 0x9e37u + 0x79b9u);
    as_volatile(word_) = std::uint32_t{code} << shift_ | std::uint32_t{neighbour_} << (16 - shift_);
  }
  __device__ __half* address() const { return reinterpret_cast<__half*>(word_) + shift_ / 16; }
  __device__ std::uint16_t read() const { return static_cast<std::uint16_t>(as_volatile(word_) >> shift_); }
  /// 0 if the other half is as it was.
  __device__ std::uint16_t neighbour_change() const {
    return static_cast<std::uint16_t>(as_volatile(word_) >> (16 - shift_)) ^ neighbour_;
  }

 private:
  std::uint32_t* word_;
  unsigned shift_;
  std::uint16_t neighbour_ = 0;
};

}  // namespace

}  // namespace experiments::probes
