#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace sim {

/// How much more memory this process can have, and what sets that bound.
struct AvailableMemory {
  std::uint64_t bytes;
  std::string_view bound;  ///< in words: "are free on the machine", "are left by ulimit -v"
};

/// The least of what the machine has free or can free (with swap), what the control groups of the process leave, and
/// its own limits of address space and data. A bound that cannot be read is none. `root` is where /proc and /sys
/// lie.
AvailableMemory available_memory(const std::filesystem::path& root = "/");

}  // namespace sim
