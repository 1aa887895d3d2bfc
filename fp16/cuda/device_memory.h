#pragma once
/// Memory, time and properties of the device for plain C++, on the runtime's default stream. Without CUDA
/// everything here still links, and throws.
///
/// Errors: std::runtime_error with one line, such as "cudaMalloc: out of memory" or "no CUDA device: ...",
/// also for what an earlier kernel did wrong and only a later call notices; std::out_of_range for a copy that
/// does not fit into the memory.

#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace fp16::cuda {

/// Memory of the device, aligned to 256 bytes, with unspecified contents until written.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  /// Holds a copy of the values, which lie side by side, as those of a vector or span.
  template <std::ranges::contiguous_range Values>
  explicit DeviceMemory(const Values& values) : DeviceMemory(std::span(values).size_bytes()) {
    copy_from(values);
  }
  DeviceMemory(DeviceMemory&&) noexcept = default;
  DeviceMemory& operator=(DeviceMemory&&) noexcept = default;

  std::size_t bytes() const { return bytes_; }
  /// The address on the device, for kernels: not to be read or written by the host.
  template <typename Value>
  Value* as() {
    return static_cast<Value*>(memory_.get());
  }
  template <typename Value>
  const Value* as() const {
    return static_cast<const Value*>(memory_.get());
  }

  /// From the host to the memory's first values.
  template <std::ranges::contiguous_range Values>
  void copy_from(const Values& values) {
    static_assert(std::is_trivially_copyable_v<std::ranges::range_value_t<Values>>);
    write(std::span(values).data(), std::span(values).size_bytes());
  }
  /// The memory's first values to the host; waits for the kernels that write them.
  template <std::ranges::contiguous_range Values>
  void copy_to(Values&& values) const {
    static_assert(std::is_trivially_copyable_v<std::ranges::range_value_t<Values>>);
    read(std::span(values).data(), std::span(values).size_bytes());
  }
  /// All of it; what is left over after whole values is left out.
  template <typename Value>
  std::vector<Value> to_host() const {
    std::vector<Value> values(bytes_ / sizeof(Value));
    copy_to(values);
    return values;
  }
  /// Every byte; does not wait.
  void fill(unsigned char byte);

 private:
  void write(const void* from, std::size_t bytes);
  void read(void* to, std::size_t bytes) const;

  std::shared_ptr<void> memory_;
  std::size_t bytes_ = 0;
};

/// From one place of the device to another that does not overlap it; does not wait. Moves 2 bytes for each byte
/// copied and is limited by the memory's bandwidth: the yardstick of kernels that stream.
void copy_on_device(void* to, const void* from, std::size_t bytes);

/// Waits until everything asked of the device is done.
void synchronize();

/// Time on the device between two points of its default stream, by events: whatever was launched in between,
/// and no more.
class EventTimer {
 public:
  /// Starts.
  EventTimer();
  /// Since the start; waits for the device. Resolution about 0.5 us.
  double milliseconds();

 private:
  std::shared_ptr<void> stopwatch_;
};

struct MemoryInfo {
  std::size_t free;   ///< what the driver would still give out, to anyone
  std::size_t total;  ///< of the device
};

/// Begins the runtime's context on the device if there is none yet.
MemoryInfo memory_info();

struct DeviceLimits {
  int multiprocessors;
  std::size_t l2_bytes;
  /// By the driver's figures: both edges of the memory's highest clock, times the width of its bus. 0 where it
  /// states none.
  double memory_bytes_per_second;
};

DeviceLimits device_limits();

}  // namespace fp16::cuda
