#pragma once
/// What a recipe holds in memory, and the batch that fits into a given number of bytes.

#include <cstdint>
#include <functional>

#include "experiments/opt_levels/recipes.h"
#include "experiments/training/training_setup.h"
#include "sim/tensor/memory_account.h"

namespace experiments::opt_levels {

/// The bytes of all roles but `temporaries`, each at its peak. On the simulator's tape these come together, in
/// the backward pass. Temporaries are left out because they are the simulator's own: kernels unfold no image,
/// and hold a narrow operand in its 8 or 4 bits, which here are computed with in 32.
std::uint64_t held_bytes(const sim::MemoryAccount& memory);

/// held_bytes() of one training step, as it was allocated, of all ranks together. The loss is not scaled, so that the step
/// is applied.
std::uint64_t measured_bytes(const TrainingSetup& setup, const Recipe& recipe, int batch,
                             const sim::DataParallel& parallel = {});

/// A batch and the bytes that it takes.
struct BatchBytes {
  int batch = 0;  ///< 0: not even one example fits
  std::uint64_t bytes = 0;
};

/// The largest batch of 1 to `limit` examples that takes no more than `budget` bytes. `bytes_of` must not fall
/// with the batch; of a straight line it is asked for a few more than log2(batch) points.
BatchBytes largest_batch(std::uint64_t budget, int limit, const std::function<std::uint64_t(int)>& bytes_of);

}  // namespace experiments::opt_levels
