#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "fp16/cuda/gemm_tile.cuh"
#include "fp16/cuda/runtime.cuh"

namespace fp16::cuda {

namespace {

GemmLaunch launch_of(const GemmKernel& kernel, const GemmArguments& arguments) {
  switch (kernel.instruction) {
    case GemmInstruction::fma:
      return gemm_fma_chain_launch(kernel, arguments);
    case GemmInstruction::wmma:
      return gemm_wmma_launch(kernel, arguments);
    case GemmInstruction::mma_sync:
      return gemm_mma_sync_launch(kernel, arguments);
    case GemmInstruction::wgmma:
      break;
  }
  return gemm_wgmma_launch(kernel, arguments);
}

unsigned count_blocks(const GemmLaunch& launch, const GemmShape& shape) {
  constexpr auto most = std::size_t{std::numeric_limits<int>::max()};
  const std::size_t blocks =
      std::size_t{divide_up(shape.m, launch.tile_m)} * divide_up(shape.n, launch.tile_n);
  if (blocks > most)
    throw std::invalid_argument("matrix product: " + std::to_string(blocks) + " tiles, at most " +
                                std::to_string(most) + " are allowed");
  return static_cast<unsigned>(blocks);
}

void allow_shared_memory(const GemmLaunch& launch) {
  const int needed = static_cast<int>(launch.dynamic_shared_bytes);
  if (const int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin); needed > most)
    throw std::runtime_error("matrix product: a block needs " + std::to_string(needed) +
                             " bytes of shared memory, the device allows " + std::to_string(most));
  check(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, needed),
        "cudaFuncSetAttribute");
}

}  // namespace

void detail::launch_gemm(const GemmKernel& kernel, const GemmArguments& arguments) {
  const int capability = 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) +
                         device_attribute(cudaDevAttrComputeCapabilityMinor);
  if (const std::string reason = unavailable_reason(kernel, capability); !reason.empty())
    throw std::runtime_error(reason);
  const GemmLaunch launch = launch_of(kernel, arguments);
  require_compiled_for(launch.kernel, std::min(launch.target, capability));
  GemmShape shape{static_cast<unsigned>(arguments.m), static_cast<unsigned>(arguments.n),
                  static_cast<unsigned>(arguments.k)};
  const unsigned blocks = count_blocks(launch, shape);
  if (launch.dynamic_shared_bytes != 0) allow_shared_memory(launch);
  const void *a = arguments.a, *b = arguments.b;
  void* d = arguments.d;
  void* parameters[] = {&shape, &a, &b, &d};
  check(cudaLaunchKernel(launch.kernel, blocks, launch.threads, parameters, launch.dynamic_shared_bytes,
                         nullptr),
        "cudaLaunchKernel");
}

}  // namespace fp16::cuda
