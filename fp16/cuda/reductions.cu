#include <cuda_fp16.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "fp16/cuda/reductions.h"
#include "fp16/cuda/runtime.cuh"

namespace fp16::cuda {

namespace {

constexpr unsigned width = tree_width;

struct SumInput {
  const __half* values;
  __device__ __half operator()(std::size_t i) const { return values[i]; }
};

struct DotInput {
  const __half* a;
  const __half* b;
  __device__ __half operator()(std::size_t i) const { return __hmul_rn(a[i], b[i]); }
};

/// One level of the tree: the sum of each block of `width` values. A lane without a partner keeps its value.
template <typename Input>
__global__ void __launch_bounds__(width) sum_blocks(Input input, std::size_t count, __half* sums) {
  __shared__ __half lanes[width];
  const std::size_t first = std::size_t{blockIdx.x} * width;
  const unsigned present = count - first < width ? static_cast<unsigned>(count - first) : width;
  const unsigned lane = threadIdx.x;
  if (lane < present) lanes[lane] = input(first + lane);
  for (unsigned live = width / 2; live > 0; live /= 2) {
    __syncthreads();
    if (lane < live && lane + live < present) lanes[lane] = __hadd_rn(lanes[lane], lanes[lane + live]);
  }
  if (lane == 0) sums[blockIdx.x] = lanes[0];
}

constexpr std::size_t blocks_of(std::size_t count) {
  return (count + width - 1) / width;
}

template <typename Input>
void sum_level(Input input, std::size_t count, __half* sums) {
  launch(reinterpret_cast<const void*>(&sum_blocks<Input>), static_cast<unsigned>(blocks_of(count)), width,
         {&input, &count, &sums});
}

/// Level by level to the root.
template <typename Input>
std::uint16_t sum_tree(Input input, std::size_t count) {
  DeviceArray<__half> first(blocks_of(count));
  DeviceArray<__half> second(blocks_of(first.size()));
  __half* sums = first.data();
  __half* next = second.data();
  sum_level(input, count, sums);
  for (count = blocks_of(count); count > 1; count = blocks_of(count)) {
    sum_level(SumInput{sums}, count, next);
    std::swap(sums, next);
  }
  __half root;
  check(cudaMemcpy(&root, sums, sizeof root, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return static_cast<__half_raw>(root).x;
}

template <typename Value>
__device__ Value addend(std::uint16_t code) {
  if constexpr (std::is_same_v<Value, __half>) {
    return __ushort_as_half(code);
  } else {
    return __halves2half2(__ushort_as_half(code), __ushort_as_half(code ^ 0x8000));
  }
}

/// A value a thread; `word` holds two zeros.
template <typename Value, bool in_shared>
__global__ void __launch_bounds__(width)
    add_by_atomics(const std::uint16_t* codes, std::size_t count, std::uint32_t* word) {
  __shared__ std::uint32_t block_word;
  if (threadIdx.x == 0) block_word = 0;
  __syncthreads();
  auto* const target = reinterpret_cast<Value*>(in_shared ? &block_word : word);
  const std::size_t i = std::size_t{blockIdx.x} * width + threadIdx.x;
  if (i < count) atomicAdd(target, addend<Value>(codes[i]));
  __syncthreads();
  if (in_shared && threadIdx.x == 0) atomicAdd(reinterpret_cast<Value*>(word), *target);
}

const void* atomics_kernel(AtomicTarget target) {
  switch (target) {
    case AtomicTarget::half_in_global:
      return reinterpret_cast<const void*>(&add_by_atomics<__half, false>);
    case AtomicTarget::half2_in_global:
      return reinterpret_cast<const void*>(&add_by_atomics<__half2, false>);
    case AtomicTarget::half_in_shared:
      return reinterpret_cast<const void*>(&add_by_atomics<__half, true>);
    case AtomicTarget::half2_in_shared:
      return reinterpret_cast<const void*>(&add_by_atomics<__half2, true>);
  }
  return nullptr;
}

const __half* as_halves(DeviceArray<std::uint16_t>& codes) {
  return reinterpret_cast<const __half*>(codes.data());
}

}  // namespace

std::uint16_t sum_blocked_tree(std::span<const std::uint16_t> values) {
  if (values.empty()) return 0;
  DeviceArray<std::uint16_t> on_device(values);
  return sum_tree(SumInput{as_halves(on_device)}, values.size());
}

std::uint16_t dot_blocked_tree(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b) {
  if (a.size() != b.size())
    throw std::invalid_argument("dot product: " + std::to_string(a.size()) + " values times " +
                                std::to_string(b.size()));
  if (a.empty()) return 0;
  DeviceArray<std::uint16_t> a_on_device(a), b_on_device(b);
  return sum_tree(DotInput{as_halves(a_on_device), as_halves(b_on_device)}, a.size());
}

std::array<std::uint16_t, 2> sum_by_atomics(std::span<const std::uint16_t> values, AtomicTarget target) {
  if (values.empty()) return {0, 0};
  DeviceArray<std::uint16_t> on_device(values);
  const std::uint32_t zeros = 0;
  DeviceArray<std::uint32_t> word{std::span<const std::uint32_t>(&zeros, 1)};
  const std::uint16_t* codes = on_device.data();
  std::size_t count = values.size();
  std::uint32_t* sum = word.data();
  launch(atomics_kernel(target), static_cast<unsigned>(blocks_of(count)), width, {&codes, &count, &sum});
  const std::uint32_t result = word.to_host()[0];
  return {static_cast<std::uint16_t>(result), static_cast<std::uint16_t>(result >> 16)};
}

}  // namespace fp16::cuda
