#include <stdexcept>
#include <string>

#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/runtime.cuh"

namespace fp16::cuda {

namespace {

void require_room(std::size_t needed, std::size_t bytes) {
  if (needed > bytes)
    throw std::out_of_range("a copy of " + std::to_string(needed) + " bytes does not fit into " +
                            std::to_string(bytes) + " bytes of the device's memory");
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  const auto array = std::make_shared<DeviceArray<std::byte>>(bytes);
  memory_ = std::shared_ptr<void>(array, array->data());
}

void DeviceMemory::fill(unsigned char byte) {
  check(cudaMemsetAsync(memory_.get(), byte, bytes_), "cudaMemsetAsync");
}

void DeviceMemory::write(const void* from, std::size_t bytes) {
  require_room(bytes, bytes_);
  check(cudaMemcpy(memory_.get(), from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void DeviceMemory::read(void* to, std::size_t bytes) const {
  require_room(bytes, bytes_);
  check(cudaMemcpy(to, memory_.get(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void copy_on_device(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpyAsync");
}

void synchronize() {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

EventTimer::EventTimer() : stopwatch_(std::make_shared<Stopwatch>()) {}

double EventTimer::milliseconds() {
  return static_cast<Stopwatch*>(stopwatch_.get())->milliseconds();
}

MemoryInfo memory_info() {
  MemoryInfo result{};
  check(cudaMemGetInfo(&result.free, &result.total), "cudaMemGetInfo");
  return result;
}

DeviceLimits device_limits() {
  constexpr double kilohertz = 1000;
  const double bus_bytes = device_attribute(cudaDevAttrGlobalMemoryBusWidth) / 8.0;
  return {
      .multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount),
      .l2_bytes = static_cast<std::size_t>(device_attribute(cudaDevAttrL2CacheSize)),
      .memory_bytes_per_second = 2 * kilohertz * device_attribute(cudaDevAttrMemoryClockRate) * bus_bytes};
}

}  // namespace fp16::cuda
