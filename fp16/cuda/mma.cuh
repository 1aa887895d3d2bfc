#pragma once
/// Where the threads of a warp hold a tensor-core instruction's matrices, and which code has the instruction.

#include <stdexcept>
#include <string>

#include "fp16/cuda/runtime.cuh"

namespace fp16::cuda {

/// A lane's part of a row pair: rows `group` and `group + 8`, columns `pair` and `pair + 1`.
struct MmaLane {
  int group;
  int pair;

  __device__ MmaLane() : group(threadIdx.x % 32 / 4), pair(threadIdx.x % 4 * 2) {}
};

/// Loads the kernel. Throws std::runtime_error if the code that the device would run was compiled for less than
/// `compute_capability`, in tens, and so lacks the instruction.
inline void require_compiled_for(const void* kernel, int compute_capability) {
  const int compiled_for = load(kernel).ptxVersion;
  if (compiled_for < compute_capability)
    throw std::runtime_error("mma: the instruction needs sm_" + std::to_string(compute_capability) +
                             ", the code for this device was compiled for sm_" +
                             std::to_string(compiled_for));
}

}  // namespace fp16::cuda
