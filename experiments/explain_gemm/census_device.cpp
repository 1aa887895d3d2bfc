#include <stdexcept>
#include <utility>
#include <vector>

#include "experiments/explain_gemm/census.h"
#include "experiments/gpu/vendor/gpu_information.h"
#include "fp16/bulk.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/device_memory.h"

namespace experiments::explain_gemm {
namespace {

using fp16::cuda::DeviceMemory;

// What NVIDIA's guide recommends for Hopper; no smaller one rules out an algorithm that PyTorch would use.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

}  // namespace

Census census_on_device(const Problem& problem, const CensusOptions& options, const SearchOptions& search,
                        const Run& run) {
  if (const std::string reason = fp16::cuda::unavailable_reason(); !reason.empty())
    throw std::runtime_error("--cublas: " + reason);
  const GpuInformation gpu = gpu_information(fp16::cuda::device());
  OpenedCublas cublas = open_cublas();
  if (!cublas.cublas) throw std::runtime_error("--cublas: " + cublas.absent);
  OpenedCublasLt cublas_lt = open_cublas_lt();
  if (!cublas_lt.cublas_lt) throw std::runtime_error("--cublas: " + cublas_lt.absent);

  const DeviceMemory halves_a(halves_of(problem.a)), halves_b(halves_of(problem.b));
  const DeviceMemory floats_a(problem.a), floats_b(problem.b);
  DeviceMemory d(problem.outputs() * sizeof(float)), workspace(workspace_bytes);
  const CensusMemory memory{
      .halves_a = halves_a.as<void>(),
      .halves_b = halves_b.as<void>(),
      .floats_a = floats_a.as<void>(),
      .floats_b = floats_b.as<void>(),
      .d = d.as<void>(),
      .workspace = workspace.as<void>(),
      .workspace_bytes = workspace_bytes,
      .write_d = [&](std::span<const std::byte> bytes) { d.copy_from(bytes); },
      .read_d = [&](std::span<std::byte> bytes) { d.copy_to(bytes); },
  };
  Census census = take_census(problem, options, search, *cublas.cublas, *cublas_lt.cublas_lt, memory, run);
  census.gpu = gpu;
  return census;
}

}  // namespace experiments::explain_gemm
