#include <string_view>

#include "fp16/cuda/device.h"
#include "fp16/cuda/runtime.cuh"

namespace fp16::cuda {

namespace {

/// Compiled for the same targets as the kernels: where it cannot be loaded, they cannot.
__global__ void do_nothing() {}

cudaDeviceProp properties() {
  int current = 0;
  cudaDeviceProp result{};
  check(cudaGetDevice(&current), "cudaGetDevice");
  check(cudaGetDeviceProperties(&result, current), "cudaGetDeviceProperties");
  return result;
}

std::string as_text(const cudaUUID_t& uuid) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

std::string unavailable_reason() {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return "no CUDA device: no NVIDIA driver is installed";
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return std::string("no CUDA device: ") + cudaGetErrorString(error);
  }
  if (count == 0) return "no CUDA device: none was found";
  cudaFuncAttributes attributes{};
  const cudaError_t loaded = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&do_nothing));
  if (loaded == cudaSuccess) return "";
  cudaGetLastError();
  return "CUDA device " + device().name + ": " + cudaGetErrorString(loaded);
}

Device device() {
  const cudaDeviceProp found = properties();
  Device result{.name = found.name,
                .uuid = as_text(found.uuid),
                .driver = 0,
                .runtime = 0,
                .compute_capability = 10 * found.major + found.minor};
  check(cudaDriverGetVersion(&result.driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&result.runtime), "cudaRuntimeGetVersion");
  return result;
}

}  // namespace fp16::cuda
