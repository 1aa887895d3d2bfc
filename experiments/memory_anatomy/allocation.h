#pragma once
/// The memory model against the bytes that a training step of the simulator really allocates.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/tensor/memory_account.h"

namespace experiments::memory_anatomy {

struct Allocation {
  std::string model;  ///< of the simulator, and the network of the same name
  std::string policy;
  sim::MemoryRole role;
  /// By the model's formulas for the simulator's own tape, which frees nothing before the step ends.
  std::uint64_t predicted_bytes = 0;
  std::uint64_t allocated_bytes = 0;  ///< the role's peak over two steps
  /// What a framework needs, that keeps what backward wants and unscales in place.
  std::uint64_t needed_bytes = 0;
};

/// Trains each of these models of the simulator, which have networks of their names, for two steps under each
/// policy. Roles that nothing is predicted for (temporaries) are left out.
std::vector<Allocation> measure_allocations(const std::vector<std::string>& models,
                                            const std::vector<std::string>& policies, int threads);

}  // namespace experiments::memory_anatomy
