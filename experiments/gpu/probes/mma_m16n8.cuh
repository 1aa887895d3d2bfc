#pragma once
/// What the instructions mma.m16n8k8 and mma.m16n8k16 have in common; see "Matrix Fragments for mma.m16n8k8" and
/// "... m16n8k16" in the PTX ISA for who holds what.

#include <cstdint>

#include "fp16/cuda/mma.cuh"

namespace experiments::probes {

namespace cuda = fp16::cuda;

inline constexpr int mma_rows = 16;
inline constexpr int mma_columns = 8;

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
    const cuda::MmaLane lane;
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
    const cuda::MmaLane lane;
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
    const cuda::MmaLane lane;
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

}  // namespace experiments::probes
