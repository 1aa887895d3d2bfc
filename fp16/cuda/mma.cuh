#pragma once
/// What the tensor-core instructions of one warp have in common; see "Matrix Fragments for mma.m16n8k8" and
/// "... m16n8k16" in the PTX ISA for who holds what.

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "fp16/cuda/kernels.h"
#include "fp16/cuda/runtime.cuh"

namespace fp16::cuda {

inline constexpr int mma_rows = 16;
inline constexpr int mma_columns = 8;
inline constexpr unsigned warps_per_block = 4;

/// A lane's part of a row pair: rows `group` and `group + 8`, columns `pair` and `pair + 1`.
struct MmaLane {
  int group;
  int pair;

  __device__ MmaLane() : group(threadIdx.x % 32 / 4), pair(threadIdx.x % 4 * 2) {}
};

/// Two neighbouring codes in one register, the one of the lower index in the low half.
inline __device__ std::uint32_t two_codes(const std::uint16_t* codes, int stride) {
  return codes[0] | static_cast<std::uint32_t>(codes[stride]) << 16;
}

/// The registers of a, 16 x depth, and b, depth x 8: eight of k at a time.
template <int depth>
struct MmaOperands {
  std::uint32_t a[depth / 4];
  std::uint32_t b[depth / 8];

  __device__ MmaOperands(const std::uint16_t* a_tile, const std::uint16_t* b_tile) {
    const MmaLane lane;
    for (int k = 0; k < depth; k += 8) {
      a[k / 4] = two_codes(a_tile + lane.group * depth + k + lane.pair, 1);
      a[k / 4 + 1] = two_codes(a_tile + (lane.group + 8) * depth + k + lane.pair, 1);
      b[k / 8] = two_codes(b_tile + (k + lane.pair) * mma_columns + lane.group, mma_columns);
    }
  }
};

/// The registers of c or d, 16 x 8.
template <typename Accumulator>
struct MmaAccumulator;

template <>
struct MmaAccumulator<float> {
  float values[4];

  __device__ explicit MmaAccumulator(const float* tile) {
    for (int i = 0; i < 4; ++i) values[i] = tile[offset(i)];
  }
  __device__ void store(float* tile) const {
    for (int i = 0; i < 4; ++i) tile[offset(i)] = values[i];
  }

 private:
  __device__ static int offset(int i) {
    const MmaLane lane;
    return (lane.group + i / 2 * 8) * mma_columns + lane.pair + i % 2;
  }
};

template <>
struct MmaAccumulator<std::uint16_t> {
  std::uint32_t values[2];

  __device__ explicit MmaAccumulator(const std::uint16_t* tile) {
    for (int i = 0; i < 2; ++i) values[i] = two_codes(tile + offset(i), 1);
  }
  __device__ void store(std::uint16_t* tile) const {
    for (int i = 0; i < 2; ++i) {
      tile[offset(i)] = static_cast<std::uint16_t>(values[i]);
      tile[offset(i) + 1] = static_cast<std::uint16_t>(values[i] >> 16);
    }
  }

 private:
  __device__ static int offset(int i) {
    const MmaLane lane;
    return (lane.group + i * 8) * mma_columns + lane.pair;
  }
};

/// What the instructions m16n8 have in common. An instruction is a type with these members; `step` computes
/// d = a * b + c by all `threads` threads of a block or warp together, from row-major tiles in shared or global
/// memory; d may be c. Instruction::multiply_add(operands, sums) is the instruction itself.
template <typename Instruction, int depth_, typename Value>
struct MmaM16n8 {
  static constexpr int rows = mma_rows, columns = mma_columns, depth = depth_, threads = 32;
  using Accumulator = Value;

  __device__ static void step(const std::uint16_t* a, const std::uint16_t* b, const Accumulator* c,
                              Accumulator* d) {
    const MmaOperands<depth> operands(a, b);
    MmaAccumulator<Accumulator> sums(c);
    Instruction::multiply_add(operands, sums);
    sums.store(d);
  }
};

/// A warp has one tile.
template <typename Instruction, typename Accumulator = typename Instruction::Accumulator>
__global__ void __launch_bounds__(32 * warps_per_block)
    mma_tiles(const std::uint16_t* a, const std::uint16_t* b, const Accumulator* c, Accumulator* d,
              std::size_t tiles) {
  const std::size_t tile = std::size_t{blockIdx.x} * warps_per_block + threadIdx.x / 32;
  if (tile >= tiles) return;
  Instruction::step(a + tile * mma_rows * Instruction::depth, b + tile * Instruction::depth * mma_columns,
                    c + tile * mma_rows * mma_columns, d + tile * mma_rows * mma_columns);
}

/// Loads the kernel. Throws std::runtime_error if the code that the device would run was compiled for less than
/// `compute_capability`, in tens, and so lacks the instruction.
inline void require_compiled_for(const void* kernel, int compute_capability) {
  const int compiled_for = load(kernel).ptxVersion;
  if (compiled_for < compute_capability)
    throw std::runtime_error("mma: the instruction needs sm_" + std::to_string(compute_capability) +
                             ", the code for this device was compiled for sm_" +
                             std::to_string(compiled_for));
}

template <typename Instruction, typename Accumulator>
void launch_mma(const MmaTiles<Accumulator>& tiles, int compute_capability) {
  const auto kernel = reinterpret_cast<const void*>(&mma_tiles<Instruction>);
  require_compiled_for(kernel, compute_capability);
  std::size_t count = tiles.d.size() / (mma_rows * mma_columns);
  if (count == 0) return;
  DeviceArray<std::uint16_t> a(tiles.a), b(tiles.b);
  DeviceArray<Accumulator> c(tiles.c), d(tiles.d.size());
  std::uint16_t *a_data = a.data(), *b_data = b.data();
  Accumulator *c_data = c.data(), *d_data = d.data();
  const auto blocks = static_cast<unsigned>((count + warps_per_block - 1) / warps_per_block);
  launch(kernel, blocks, 32 * warps_per_block, {&a_data, &b_data, &c_data, &d_data, &count});
  d.copy_to(tiles.d);
}

// One pair for each file.
void mma_m16n8k8(const MmaTiles<float>& tiles);
void mma_m16n8k8(const MmaTiles<std::uint16_t>& tiles);
void mma_m16n8k16(const MmaTiles<float>& tiles);
void mma_m16n8k16(const MmaTiles<std::uint16_t>& tiles);

}  // namespace fp16::cuda
