#pragma once
/// Where an address of a kernel lies on the host, and whether it may be used.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/emulator/warp.h"

namespace emulator {

// Generic addresses of shared and local memory and of parameters begin here; those of global memory are the host's.
inline constexpr std::uint64_t shared_window = 0xfff1'0000'0000'0000;
inline constexpr std::uint64_t local_window = 0xfff2'0000'0000'0000;
inline constexpr std::uint64_t parameter_window = 0xfff3'0000'0000'0000;
inline constexpr std::uint64_t window_size = std::uint64_t{1} << 32;

constexpr std::uint64_t window_of(Space space) {
  switch (space) {
    case Space::shared:
      return shared_window;
    case Space::local:
      return local_window;
    case Space::parameter:
      return parameter_window;
    default:
      return 0;
  }
}

/// The live allocations of cudaMalloc and the variables of modules.
class GlobalMemory {
 public:
  /// Who allocates: only a program's allocations are counted, and kernels may not write to constants.
  enum class Owner { program, host, variable, constant };

  /// Filled with poison.
  std::byte* allocate(std::uint64_t size, Owner owner);
  /// Whether there was such an allocation. Its memory is not given out again for a while.
  bool free(const void* address, Owner owner);
  /// Whether all of these bytes are in one live allocation.
  bool contains(const void* address, std::uint64_t size) const;
  /// The bytes for a kernel's access; throws Fault.
  std::byte* access(std::uint64_t address, std::uint64_t size, bool writes);

  /// Bytes of the program's allocations.
  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t live_allocations() const { return live_allocations_; }

 private:
  struct Block {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    Owner owner = Owner::program;
    std::unique_ptr<std::byte[]> bytes{};
  };
  const Block* find(std::uint64_t address) const;

  std::map<std::uint64_t, Block> blocks_;
  std::deque<Block> freed_;
  std::uint64_t freed_bytes_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_allocations_ = 0;
  mutable const Block* last_ = nullptr;
};

GlobalMemory& global_memory();

/// The bytes at an address that a lane uses; throws Fault.
std::byte* access_memory(Warp& warp, int lane, Space space, std::uint64_t address, std::uint64_t size,
                         Access access);

}  // namespace emulator
