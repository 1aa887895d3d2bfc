#pragma once
/// The CUDA runtime with its errors as exceptions, for the .cu files beside this one.

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace fp16::cuda {

/// Throws std::runtime_error "what: why" unless `error` is success.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report it again
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// Launches; errors while it runs are reported by the next call that waits.
inline void launch(const void* kernel, dim3 blocks, dim3 threads, std::vector<void*> arguments) {
  check(cudaLaunchKernel(kernel, blocks, threads, arguments.data(), 0, nullptr), "cudaLaunchKernel");
}

/// Loads the code of `kernel`, which its first launch would do otherwise, and be slower by it.
inline cudaFuncAttributes load(const void* kernel) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  return attributes;
}

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

/// Memory of the device.
template <typename Value>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    check(cudaMalloc(&data_, size * sizeof(Value)), "cudaMalloc");
  }
  explicit DeviceArray(std::span<const Value> values) : DeviceArray(values.size()) {
    check(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  Value* data() { return data_; }
  std::size_t size() const { return size_; }

  /// Waits for the device.
  void copy_to(std::span<Value> values) const {
    check(cudaMemcpy(values.data(), data_, values.size_bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  std::vector<Value> to_host() const {
    std::vector<Value> values(size_);
    copy_to(values);
    return values;
  }

 private:
  Value* data_ = nullptr;
  std::size_t size_;
};

/// Time on the device between two points of its default stream.
class Stopwatch {
 public:
  Stopwatch() {
    check(cudaEventCreate(&start_), "cudaEventCreate");
    check(cudaEventCreate(&stop_), "cudaEventCreate");
    check(cudaEventRecord(start_), "cudaEventRecord");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  /// Since construction; waits for the device.
  double milliseconds() {
    float result = 0;
    check(cudaEventRecord(stop_), "cudaEventRecord");
    check(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&result, start_, stop_), "cudaEventElapsedTime");
    return result;
  }

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

}  // namespace fp16::cuda
