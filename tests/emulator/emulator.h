#pragma once
/// A CUDA device for tests: the symbols of the CUDA runtime, which interpret the PTX in a program's fat binaries on
/// the CPU (compile with nvcc's --no-compress, for an architecture with PTX). Link it in place of cudart.
///
/// It is an independent reading of the PTX ISA and proves what kernels compute from it: indexing, layouts of
/// fragments and descriptors, synchronisation, arithmetic as nvcc compiled it. Speed, the bits of the approximate
/// instructions (here: rounded from binary64) and those of tensor cores (here: fp16::hopper of fp16/mma.h) are not
/// those of silicon.
///
/// Beyond what a GPU reports it finds races on shared memory between barriers, shared memory that tensor cores read
/// without a proxy fence, copies and matrix products that were not waited for, and it fills fresh memory with
/// poison. A kernel's error is reported by the next call that waits, and by all calls after it; cudaGetErrorString
/// then tells kernel, instruction and address.

#include <cstdint>

namespace emulator {

/// The device and its faults. Programs that do not call `configure` take them from the environment:
/// HALFLAB_EMULATOR_FAULT=no_device, old_driver, capability=75, memory=BYTES or launch=N (several with commas).
struct Settings {
  bool no_device = false;
  bool old_driver = false;
  /// PTX for newer devices is refused.
  int compute_capability = 90;
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  /// The launch with this number, from 1, fails while it runs; 0: none.
  std::uint64_t failing_launch = 0;
  int multiprocessors = 4;
};

/// Also forgets errors and sets the counters of launches and instructions to 0. Allocations stay.
void configure(const Settings& settings);

struct Counters {
  std::uint64_t launches = 0;
  std::uint64_t instructions = 0;  ///< times lanes
  std::uint64_t live_bytes = 0;    ///< of cudaMalloc
  std::uint64_t live_allocations = 0;
};
Counters counters();

}  // namespace emulator
