#include <cuda_fp16.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "fp16/cuda/kernels.h"
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

}  // namespace fp16::cuda
