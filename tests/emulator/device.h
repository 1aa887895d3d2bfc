#pragma once
/// The one emulated device: what was registered, its settings, its last error.

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/emulator/emulator.h"
#include "tests/emulator/module.h"
#include "tests/emulator/warp.h"

namespace emulator {

/// A fat binary, of which the module that fits the device is loaded when it is first needed.
struct FatBinary {
  const void* wrapper = nullptr;
  std::unique_ptr<Module> module{};
  int module_capability = 0;  ///< of the device for which it was chosen
};

struct Kernel {
  FatBinary* binary = nullptr;
  std::string name;
  std::uint64_t dynamic_shared_limit = 48 << 10;
};

struct DeviceVariable {
  FatBinary* binary = nullptr;
  std::string name;
  std::uint64_t size = 0;
};

/// Everything that the API's functions share; they hold its mutex.
class Device {
 public:
  static Device& instance();

  std::recursive_mutex mutex;
  Settings settings;
  Counters counters;
  std::map<const void*, Kernel> kernels;
  std::map<const void*, DeviceVariable> variables;
  std::vector<std::unique_ptr<FatBinary>> binaries;

  /// Runs an API function: refuses without a device, turns what it throws into its error, remembers the error.
  template <typename Body>
  cudaError_t call(Body body);
  /// Calls a function that waits for the device, and reports what a kernel did.
  template <typename Body>
  cudaError_t waiting_call(Body body);

  cudaError_t take_last_error();
  cudaError_t last_error() const { return last_error_; }
  /// What is known of the error beyond its code; empty if nothing is.
  const char* detail_of(cudaError_t error) const;
  void forget_errors();

  /// Throws cudaErrorNoKernelImageForDevice as ApiError if the device is older than the PTX.
  Module& module_of(FatBinary& binary);
  Kernel& kernel_of(const void* function);
  const Program& program_of(Kernel& kernel) { return module_of(*kernel.binary).kernel(kernel.name); }
  std::byte* variable_address(const void* symbol, std::uint64_t& size);

  void launch(const void* function, dim3 blocks, dim3 threads, void** arguments, std::uint64_t shared);

 private:
  Device();
  cudaError_t availability() const;
  cudaError_t remember(cudaError_t error);
  void run(const Launch& launch);

  cudaError_t last_error_ = cudaSuccess;
  cudaError_t kernel_error_ = cudaSuccess;  ///< sticky
  std::map<cudaError_t, std::string> details_;
};

/// An error that an API function returns.
struct ApiError {
  cudaError_t error;
  std::string detail{};
};

template <typename Body>
cudaError_t Device::call(Body body) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t error = availability(); error != cudaSuccess) return remember(error);
  try {
    body();
    return cudaSuccess;
  } catch (const ApiError& error) {
    if (!error.detail.empty()) details_[error.error] = error.detail;
    return remember(error.error);
  } catch (const Unsupported& error) {
    details_[cudaErrorInvalidPtx] = error.what();
    return remember(cudaErrorInvalidPtx);
  }
}

template <typename Body>
cudaError_t Device::waiting_call(Body body) {
  return call([&] {
    if (kernel_error_ != cudaSuccess) throw ApiError{kernel_error_};
    body();
  });
}

}  // namespace emulator
