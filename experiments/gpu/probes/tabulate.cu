#include <cuda_fp16.h>

#include <algorithm>
#include <stdexcept>

#include "experiments/gpu/probes/intrinsics.h"
#include "experiments/gpu/probes/traversal.cuh"
#include "fp16/cuda/runtime.cuh"

namespace experiments::probes {

FP16_TABULATED_INTRINSICS(FP16_NATIVE)

namespace {

constexpr unsigned codes = 1 << 16;

/// `tables`: one or two of 65,536 codes, one behind the other.
template <typename Native, Pipe pipe>
__global__ void __launch_bounds__(threads_per_block) tabulate_codes(std::uint16_t* tables) {
  const unsigned code = blockIdx.x * threads_per_block + threadIdx.x;
  const half first = half::from_bits(static_cast<std::uint16_t>(code));
  if constexpr (pipe == Pipe::scalar) {
    tables[code] = __half_as_ushort(Native{}(native_operand(first)));
  } else {
    const auto second = static_cast<std::uint16_t>(partner(code, 16));
    const CodePair answer = codes_of(Native{}(packed_operand(first, half::from_bits(second))));
    tables[code] = static_cast<std::uint16_t>(answer[0]);
    tables[codes + second] = static_cast<std::uint16_t>(answer[1]);
  }
}

struct TableKernel {
  std::string_view function;
  const void* kernel;
};

const std::vector<TableKernel>& table_kernels() {
#define FP16_TABLE_KERNEL(function, pipe) \
  {#function, reinterpret_cast<const void*>(&tabulate_codes<native_##function, Pipe::pipe>)},
  static const std::vector<TableKernel> all{FP16_TABULATED_INTRINSICS(FP16_TABLE_KERNEL)};
#undef FP16_TABLE_KERNEL
  return all;
}

}  // namespace

std::vector<std::vector<std::uint16_t>> tabulate(const TabulatedFunction& function) {
  const auto found = std::ranges::find(table_kernels(), function.function, &TableKernel::function);
  if (found == table_kernels().end())
    throw std::runtime_error("no table of '" + std::string(function.function) + "' was compiled");
  const std::size_t tables = function.pipe == Pipe::scalar ? 1 : 2;
  cuda::DeviceArray<std::uint16_t> on_device(tables * codes);
  std::uint16_t* argument = on_device.data();
  cuda::launch(found->kernel, codes / threads_per_block, threads_per_block, {&argument});
  const std::vector<std::uint16_t> all = on_device.to_host();
  std::vector<std::vector<std::uint16_t>> result;
  for (std::size_t i = 0; i < tables; ++i)
    result.emplace_back(all.begin() + i * codes, all.begin() + (i + 1) * codes);
  return result;
}

}  // namespace experiments::probes
