#pragma once
/// What a training step of the simulator allocates on its tape, by formula. Other than a framework
/// (memory_model.h), the tape keeps every value until the step ends, computes masks again, keeps the
/// gradients of layers' outputs to look at, and unscales into new tensors.

#include <cstdint>

#include "sim/sizing/typed_network.h"

namespace sim {

/// In bytes, as MemoryAccount counts the roles of these names at their peaks.
struct TapeMemory {
  std::uint64_t activations = 0;  ///< all values, casts of weights too, and what operations save
  std::uint64_t gradients = 0;  ///< the most at one time: within backward or, with unscaled ones, at its end
};

TapeMemory tape_memory(const TypedNetwork& network);

}  // namespace sim
