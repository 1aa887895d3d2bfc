#include <cuda_fp16.h>

#include <algorithm>

#include "fp16/cuda/histogram.h"
#include "fp16/cuda/runtime.cuh"
#include "fp16/cuda/streaming.cuh"

namespace fp16::cuda {

namespace {

using Total = unsigned long long;

/// 32-bit counters in a block's shared memory, `columns` for each row. With a column for each thread nobody
/// waits for anybody; with fewer the lanes of a warp have one each, and the warps share them.
template <unsigned rows, unsigned columns, unsigned threads>
struct Counters {
  static_assert(columns == threads || columns == 32);

  unsigned values[rows][columns];

  __device__ void clear() {
    for (unsigned i = threadIdx.x; i < rows * columns; i += threads) values[i / columns][i % columns] = 0;
    __syncthreads();
  }

  __device__ void count(unsigned row, unsigned times = 1) {
    unsigned& counter = values[row][threadIdx.x % columns];
    if constexpr (columns == threads) {
      counter += times;
    } else {
      atomicAdd(&counter, times);
    }
  }

  __device__ void add_to(Total* totals) {
    __syncthreads();
    for (unsigned row = threadIdx.x; row < rows; row += threads) {
      Total sum = 0;
      // Neighbours begin at different columns, so that they read from different banks.
      for (unsigned i = 0; i < columns; ++i) sum += values[row][(threadIdx.x + i) % columns];
      if (sum != 0) atomicAdd(&totals[row], sum);
    }
  }
};

/// Calls visit(value) for this thread's share of the array.
template <typename Value, typename Visit>
__device__ void for_each_value(const Value* values, std::size_t count, Visit visit) {
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t all_threads = std::size_t{gridDim.x} * blockDim.x;
  const std::size_t packs = is_pack_aligned(values) ? count / Pack<Value>::size : 0;
  for_each_pack(reinterpret_cast<const Pack<Value>*>(values), packs, {thread, all_threads},
                [&](const Pack<Value>& pack, std::size_t) {
#pragma unroll
                  for (unsigned i = 0; i < Pack<Value>::size; ++i) visit(pack.values[i]);
                });
  for (std::size_t i = packs * Pack<Value>::size + thread; i < count; i += all_threads) visit(values[i]);
}

constexpr unsigned half_threads = 128;

/// max(0, min(a * b + c, 1)), and 0 of a NaN: PTX ISA, "Floating Point Instructions: fma", .sat.
__device__ float saturated_fma(float a, float b, float c) {
  float result;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
  return result;
}

__global__ void __launch_bounds__(half_threads)
    count_halves(const std::uint16_t* codes, std::size_t count, Total* totals) {
  constexpr int trailing_bits = 23;
  __shared__ Counters<HalfHistogram::rows, half_threads, half_threads> counters;
  counters.clear();
  for_each_value(codes, count, [&](std::uint16_t code) {
    const float magnitude = fabsf(__half2float(__ushort_as_half(code)));
    const unsigned bits = __float_as_uint(saturated_fma(magnitude, 0x1p-16f, 0x1p-41f));
    counters.count(bits >> trailing_bits & (HalfHistogram::rows - 1));
  });
  counters.add_to(totals);
}

constexpr unsigned float_threads = 256;

constexpr unsigned binary32_infinity = 0x7f800000;

__device__ unsigned row_of(unsigned magnitude) {
  const unsigned exponent = magnitude >> 23;
  if (magnitude > binary32_infinity) return FloatHistogram::nan_row;
  if (exponent != 0 || magnitude == 0) return exponent;
  return FloatHistogram::first_subnormal_row + 31 - __clz(static_cast<int>(magnitude));
}

/// What one thread has seen the cast do.
struct ThreadLosses {
  unsigned inexact = 0;
  unsigned subnormal = 0;
  unsigned flushed = 0;
  unsigned overflowed = 0;

  __device__ void count(unsigned magnitude, float scale) {
    constexpr unsigned min_normal = 0x400, infinity = 0x7c00;
    if (magnitude >= binary32_infinity) return;
    // Exact, or so small that the cast flushes it, or so large that it overflows, as the exact product would.
    const float scaled = __fmul_rn(__uint_as_float(magnitude), scale);
    const __half rounded = __float2half_rn(scaled);
    const unsigned code = __half_as_ushort(rounded);
    const bool is_flushed = code == 0 && magnitude != 0;
    const bool is_overflowed = code == infinity;
    const bool differs = __float_as_uint(__half2float(rounded)) != __float_as_uint(scaled);
    inexact += is_flushed || (differs && !is_overflowed);
    subnormal += code != 0 && code < min_normal;
    flushed += is_flushed;
    overflowed += is_overflowed;
  }
};

__global__ void __launch_bounds__(float_threads)
    count_floats(const float* values, std::size_t count, float scale, Total* totals) {
  __shared__ Counters<FloatHistogram::rows, 32, float_threads> counters;
  counters.clear();
  ThreadLosses losses;
  for_each_value(values, count, [&](float value) {
    const unsigned magnitude = __float_as_uint(value) & 0x7fffffffu;
    counters.count(row_of(magnitude));
    losses.count(magnitude, scale);
  });
  constexpr unsigned row = FloatHistogram::first_loss_row;
  counters.count(row, losses.inexact);
  counters.count(row + 1, losses.subnormal);
  counters.count(row + 2, losses.flushed);
  counters.count(row + 3, losses.overflowed);
  counters.add_to(totals);
}

/// The number of blocks that the multiprocessors hold at a time, at most what there is work for.
unsigned blocks_for(std::size_t count, std::size_t per_block) {
  constexpr std::size_t blocks_per_multiprocessor = 6;  // by their counters, on those with 228 KiB
  const std::size_t wanted = (count + per_block - 1) / per_block;
  static const auto multiprocessors = static_cast<std::size_t>(device_limits().multiprocessors);
  return static_cast<unsigned>(std::min(wanted, blocks_per_multiprocessor * multiprocessors));
}

}  // namespace

void HalfHistogram::add(const std::uint16_t* codes, std::size_t count) {
  if (count == 0) return;
  auto* totals = totals_.as<std::uint64_t>();
  launch(reinterpret_cast<const void*>(&count_halves),
         blocks_for(count, half_threads * Pack<std::uint16_t>::size), half_threads,
         {&codes, &count, &totals});
}

void FloatHistogram::add(const float* values, std::size_t count) {
  if (count == 0) return;
  auto* totals = totals_.as<std::uint64_t>();
  launch(reinterpret_cast<const void*>(&count_floats), blocks_for(count, float_threads * Pack<float>::size),
         float_threads, {&values, &count, &scale_, &totals});
}

}  // namespace fp16::cuda
