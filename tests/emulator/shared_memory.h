#pragma once
/// A block's shared memory, which knows who wrote and read each byte since the last barrier.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator {

struct Access {
  bool writes = false;
  bool atomic = false;          ///< also .volatile, .relaxed and the like
  bool by_async_proxy = false;  ///< by the tensor cores
};
inline constexpr Access reading{};
inline constexpr Access writing{.writes = true};

/// What memory holds before anyone wrote to it: NaN as a binary16 or binary32 value, and an unlikely integer.
inline constexpr std::byte poison{0xfd};

/// Bytes that different warps touch between two barriers of the block, at least one of them writing, are a race,
/// unless all do so atomically. The order of lanes within a warp is not looked at.
class SharedMemory {
 public:
  explicit SharedMemory(std::uint64_t size) : bytes_(size, poison), history_(size) {}

  std::uint64_t size() const { return bytes_.size(); }

  /// `size` bytes at `address`, after noting that `warp` accesses them. Throws Fault for what lies outside and
  /// for races.
  std::byte* access(std::uint64_t address, std::uint64_t size, Access access, int warp);

  /// A barrier of the block was passed.
  void pass_barrier() { ++epoch_; }

  /// fence.proxy.async of a warp: tensor cores see what it wrote.
  void pass_proxy_fence(int warp);

 private:
  struct History {
    std::uint32_t write_epoch = 0;
    std::uint32_t read_epoch = 0;
    std::uint32_t write_time = 0;
    std::int8_t writer = -1;
    std::int8_t reader = -1;  ///< `several` if more than one
    bool written_atomically = false;
    bool read_atomically = false;
  };
  static constexpr std::int8_t several = 127;

  void note(History& byte, std::uint64_t address, Access access, int warp);

  std::vector<std::byte> bytes_;
  std::vector<History> history_;
  std::uint32_t epoch_ = 1;
  std::uint32_t time_ = 1;
  std::uint32_t fence_time_[32] = {};
};

}  // namespace emulator
