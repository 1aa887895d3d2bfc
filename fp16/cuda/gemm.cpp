#include "fp16/cuda/gemm.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "fp16/cuda/device.h"
#include "fp16/formats.h"

namespace fp16::cuda {

namespace {

constexpr int any_later = 1000;

void check_size(const char* name, std::size_t size) {
  if (size > max_gemm_size)
    throw std::invalid_argument("matrix product: " + std::string(name) + " is " + std::to_string(size) +
                                ", at most " + std::to_string(max_gemm_size) + " is allowed");
}

void check_address(const char* name, const void* matrix, std::size_t elements) {
  if (elements == 0) return;
  if (matrix == nullptr || reinterpret_cast<std::uintptr_t>(matrix) % 16 != 0)
    throw std::invalid_argument("matrix product: the address of " + std::string(name) +
                                " is null or no multiple of 16");
}

std::string capability_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

}  // namespace

const std::vector<GemmKernel>& gemm_kernels() {
  using enum GemmInstruction;
  static const std::vector<GemmKernel> kernels{
      {"fma_binary32", fma, binary32, binary32, binary32, 75, any_later},
      {"fma_binary16", fma, binary16, binary16, binary16, 75, any_later},
      {"wmma_binary32", wmma, binary16, binary32, binary32, 75, any_later},
      {"wmma_binary32_rounded", wmma, binary16, binary32, binary16, 75, any_later},
      {"wmma_binary16", wmma, binary16, binary16, binary16, 75, any_later},
      {"mma_sync_binary32", mma_sync, binary16, binary32, binary32, 75, any_later},
      {"mma_sync_binary32_rounded", mma_sync, binary16, binary32, binary16, 75, any_later},
      {"mma_sync_binary16", mma_sync, binary16, binary16, binary16, 75, any_later},
      {"wgmma_binary32", wgmma, binary16, binary32, binary32, 90, 90},
      {"wgmma_binary32_rounded", wgmma, binary16, binary32, binary16, 90, 90},
      {"wgmma_binary16", wgmma, binary16, binary16, binary16, 90, 90},
  };
  return kernels;
}

const GemmKernel& find_gemm_kernel(std::string_view name) {
  const std::vector<GemmKernel>& kernels = gemm_kernels();
  const auto found = std::ranges::find(kernels, name, &GemmKernel::name);
  if (found != kernels.end()) return *found;
  std::string names;
  for (const GemmKernel& kernel : kernels) names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  throw std::invalid_argument("matrix product: no kernel is called '" + std::string(name) +
                              "', allowed are " + names);
}

std::string unavailable_reason(const GemmKernel& kernel) {
  return available() ? detail::unavailable_reason(kernel, device().compute_capability) : unavailable_reason();
}

void gemm(const GemmKernel& kernel, const GemmArguments& arguments) {
  check_size("m", arguments.m);
  check_size("n", arguments.n);
  check_size("k", arguments.k);
  check_address("A", arguments.a, arguments.m * arguments.k);
  check_address("B", arguments.b, arguments.k * arguments.n);
  check_address("D", arguments.d, arguments.m * arguments.n);
  if (arguments.m == 0 || arguments.n == 0) return;
  detail::launch_gemm(kernel, arguments);
}

std::string detail::unavailable_reason(const GemmKernel& kernel, int capability) {
  if (capability >= kernel.least_capability && capability <= kernel.largest_capability) return {};
  const bool alone = kernel.least_capability == kernel.largest_capability;
  return std::string(kernel.name) + ": needs compute capability " + capability_text(kernel.least_capability) +
         (alone ? " and no other" : " or newer") + ", the device has " + capability_text(capability);
}

}  // namespace fp16::cuda
