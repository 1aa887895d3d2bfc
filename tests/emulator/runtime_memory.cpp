/// The runtime's functions for memory. Streams are synchronous.

#include <cuda_runtime_api.h>

#include <cstring>
#include <sstream>

#include "tests/emulator/device.h"
#include "tests/emulator/memory.h"

using emulator::ApiError;
using emulator::Device;
using emulator::global_memory;
using emulator::GlobalMemory;

namespace {

void check_on_device(const void* address, std::size_t size, const char* what) {
  if (size == 0 || global_memory().contains(address, size)) return;
  std::ostringstream text;
  text << what << ' ' << address << ", " << size << " bytes, is not within one live allocation";
  throw ApiError{cudaErrorInvalidValue, text.str()};
}

void check_copy(const void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice)
    check_on_device(to, size, "copy: device address");
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)
    check_on_device(from, size, "copy: device address");
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    throw ApiError{cudaErrorInvalidMemcpyDirection};
}

cudaError_t copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  return Device::instance().waiting_call([&] {
    check_copy(to, from, size, kind);
    if (size != 0) std::memmove(to, from, size);
  });
}

cudaError_t set(void* address, int value, std::size_t size) {
  return Device::instance().waiting_call([&] {
    check_on_device(address, size, "memset: device address");
    if (size != 0) std::memset(address, value, size);
  });
}

cudaError_t allocate(void** address, std::size_t size) {
  return Device::instance().waiting_call([&] {
    *address = nullptr;
    if (size == 0) return;
    const std::uint64_t limit = Device::instance().settings.memory_bytes;
    if (size > limit || global_memory().live_bytes() > limit - size)
      throw ApiError{cudaErrorMemoryAllocation};
    *address = global_memory().allocate(size, GlobalMemory::Owner::program);
  });
}

cudaError_t release(void* address, GlobalMemory::Owner owner) {
  return Device::instance().call([&] {
    if (address != nullptr && !global_memory().free(address, owner)) throw ApiError{cudaErrorInvalidValue};
  });
}

cudaError_t allocate_on_host(void** address, std::size_t size) {
  return Device::instance().call(
      [&] { *address = size == 0 ? nullptr : global_memory().allocate(size, GlobalMemory::Owner::host); });
}

std::byte* symbol_bytes(const void* symbol, std::size_t count, std::size_t offset) {
  std::uint64_t size = 0;
  std::byte* const bytes = Device::instance().variable_address(symbol, size);
  if (offset > size || count > size - offset) throw ApiError{cudaErrorInvalidValue};
  return bytes + offset;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t size) {
  return allocate(address, size);
}
cudaError_t cudaMallocAsync(void** address, std::size_t size, cudaStream_t) {
  return allocate(address, size);
}
cudaError_t cudaFree(void* address) {
  return release(address, GlobalMemory::Owner::program);
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t) {
  return release(address, GlobalMemory::Owner::program);
}
cudaError_t cudaMallocHost(void** address, std::size_t size) {
  return allocate_on_host(address, size);
}
cudaError_t cudaHostAlloc(void** address, std::size_t size, unsigned) {
  return allocate_on_host(address, size);
}
cudaError_t cudaFreeHost(void* address) {
  return release(address, GlobalMemory::Owner::host);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  return copy(to, from, size, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind, cudaStream_t) {
  return copy(to, from, size, kind);
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  for (std::size_t row = 0; row < height; ++row) {
    const cudaError_t error = copy(static_cast<std::byte*>(to) + row * to_pitch,
                                   static_cast<const std::byte*>(from) + row * from_pitch, width, kind);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemset(void* address, int value, std::size_t size) {
  return set(address, value, size);
}
cudaError_t cudaMemsetAsync(void* address, int value, std::size_t size, cudaStream_t) {
  return set(address, value, size);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t count, std::size_t offset,
                               cudaMemcpyKind) {
  return Device::instance().waiting_call(
      [&] { std::memcpy(symbol_bytes(symbol, count, offset), from, count); });
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t count, std::size_t offset,
                                 cudaMemcpyKind) {
  return Device::instance().waiting_call(
      [&] { std::memcpy(to, symbol_bytes(symbol, count, offset), count); });
}
cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return Device::instance().call([&] { *address = symbol_bytes(symbol, 0, 0); });
}
cudaError_t cudaGetSymbolSize(std::size_t* size, const void* symbol) {
  return Device::instance().call([&] {
    std::uint64_t bytes = 0;
    Device::instance().variable_address(symbol, bytes);
    *size = bytes;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return Device::instance().waiting_call([&] {
    *total = Device::instance().settings.memory_bytes;
    *free = *total - std::min<std::uint64_t>(*total, global_memory().live_bytes());
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return Device::instance().call([&] {
    *attributes = {};
    const bool on_device = global_memory().contains(address, 1);
    attributes->type = on_device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    attributes->devicePointer = on_device ? const_cast<void*>(address) : nullptr;
  });
}

}  // extern "C"
