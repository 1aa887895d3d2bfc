#pragma once
/// The device that every kernel runs on. Without CUDA all of fp16/cuda still links: lists are the same, `available`
/// says no, and what would need a device throws.
///
/// Errors: std::runtime_error with one line, such as "cudaMalloc: out of memory" or "no CUDA device: ...".

#include <string>

#include "fp16/mma.h"

namespace fp16::cuda {

/// Whether this program has device code and there is a device that can run it.
bool available();
/// Why not, as one line; empty if `available`.
std::string unavailable_reason();

struct Device {
  std::string name;
  std::string uuid;        ///< as nvidia-smi writes it
  int driver;              ///< 1000 * major + 10 * minor
  int runtime;             ///< likewise
  int compute_capability;  ///< 10 * major + minor
};

/// The runtime's current device.
Device device();

/// The row of mma.h for a device of `compute_capability` (10 * major + minor); the newest for what is newer.
const TensorCore& tensor_core_of(int compute_capability);

}  // namespace fp16::cuda
