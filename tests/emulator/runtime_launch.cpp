/// The runtime's functions that nvcc's host code calls to register and to launch kernels.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "tests/emulator/device.h"

using emulator::ApiError;
using emulator::Device;
using emulator::FatBinary;

namespace {

struct Configuration {
  dim3 blocks;
  dim3 threads;
  std::size_t shared = 0;
  void* stream = nullptr;
};
thread_local std::vector<Configuration> configurations;

FatBinary* binary_of(void** handle) {
  return reinterpret_cast<FatBinary*>(handle);
}

cudaError_t launch(const void* function, dim3 blocks, dim3 threads, void** arguments, std::size_t shared) {
  return Device::instance().call(
      [&] { Device::instance().launch(function, blocks, threads, arguments, shared); });
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Device& device = Device::instance();
  const std::lock_guard lock(device.mutex);
  device.binaries.push_back(std::make_unique<FatBinary>(FatBinary{.wrapper = wrapper}));
  return reinterpret_cast<void**>(device.binaries.back().get());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 1;
}

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  Device& device = Device::instance();
  const std::lock_guard lock(device.mutex);
  device.kernels[host_function] = {.binary = binary_of(handle), .name = name};
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int, std::size_t size,
                       int, int) {
  Device& device = Device::instance();
  const std::lock_guard lock(device.mutex);
  device.variables[host_variable] = {.binary = binary_of(handle), .name = name, .size = size};
}

unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, std::size_t shared, CUstream_st* stream) {
  configurations.push_back({blocks, threads, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* blocks, dim3* threads, std::size_t* shared, void* stream) {
  if (configurations.empty()) return cudaErrorMissingConfiguration;
  const Configuration last = configurations.back();
  configurations.pop_back();
  *blocks = last.blocks;
  *threads = last.threads;
  *shared = last.shared;
  std::memcpy(stream, &last.stream, sizeof last.stream);
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads, void** arguments,
                               std::size_t shared, cudaStream_t) {
  return launch(kernel, blocks, threads, arguments, shared);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 blocks, dim3 threads, void** arguments,
                             std::size_t shared, cudaStream_t) {
  return launch(function, blocks, threads, arguments, shared);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  Device& device = Device::instance();
  return device.call([&] {
    emulator::Kernel& kernel = device.kernel_of(function);
    const emulator::Program& program = device.program_of(kernel);
    *attributes = {};
    attributes->sharedSizeBytes = program.static_shared_bytes;
    attributes->localSizeBytes = program.local_bytes;
    attributes->maxThreadsPerBlock = program.max_threads;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = device.settings.compute_capability;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(kernel.dynamic_shared_limit);
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  Device& device = Device::instance();
  return device.call([&] {
    emulator::Kernel& kernel = device.kernel_of(function);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return;
    if (value < 0 || value > 227 << 10) throw ApiError{cudaErrorInvalidValue};
    kernel.dynamic_shared_limit = static_cast<std::uint64_t>(value);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                          std::size_t shared) {
  Device& device = Device::instance();
  return device.call([&] {
    const emulator::Program& program = device.program_of(device.kernel_of(function));
    if (threads < 1 || threads > program.max_threads) throw ApiError{cudaErrorInvalidValue};
    const std::size_t used = std::max<std::size_t>(program.static_shared_bytes + shared, 1);
    *blocks =
        static_cast<int>(std::min<std::size_t>(2048 / static_cast<std::size_t>(threads), (228 << 10) / used));
    *blocks = std::min(*blocks, 32);
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                   int threads, std::size_t shared,
                                                                   unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

}  // extern "C"
