#include "fp16/cuda/gemm.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fp16/cuda/device.h"
#include "fp16/formats.h"

namespace cuda = fp16::cuda;

namespace {

/// Arguments that are right, of matrices that nobody reads.
cuda::GemmArguments right_arguments() {
  alignas(16) static std::uint16_t memory[8];
  return {.m = 1, .n = 1, .k = 1, .a = memory, .b = memory, .d = memory};
}

void check_refused(const cuda::GemmArguments& arguments, const char* what) {
  CHECK_THROWS_WITH_AS(cuda::gemm(cuda::gemm_kernels().front(), arguments), what, std::invalid_argument);
}

}  // namespace

TEST_CASE("the matrix products of the device have names and possible formats") {
  std::set<std::string_view> names;
  for (const cuda::GemmKernel& kernel : cuda::gemm_kernels()) {
    CAPTURE(kernel.name);
    CHECK(names.insert(kernel.name).second);
    CHECK(&cuda::find_gemm_kernel(kernel.name) == &kernel);
    CHECK(kernel.accumulator.precision >= kernel.operands.precision);
    CHECK(kernel.accumulator.precision >= kernel.output.precision);
    CHECK(kernel.least_capability <= kernel.largest_capability);
  }
  CHECK_THROWS_WITH_AS(cuda::find_gemm_kernel("wgmma"),
                       doctest::Contains("no kernel is called 'wgmma', allowed are fma_binary32, "),
                       std::invalid_argument);
}

TEST_CASE("a matrix product of the device refuses sizes and addresses that it cannot have") {
  cuda::GemmArguments arguments = right_arguments();
  arguments.n = cuda::max_gemm_size + 1;
  check_refused(arguments, "matrix product: n is 1073741825, at most 1073741824 is allowed");
  arguments = right_arguments();
  arguments.b = nullptr;
  check_refused(arguments, "matrix product: the address of B is null or no multiple of 16");
  arguments = right_arguments();
  arguments.d = static_cast<std::uint16_t*>(arguments.d) + 1;
  check_refused(arguments, "matrix product: the address of D is null or no multiple of 16");
}

TEST_CASE("a matrix product says why the device cannot run it") {
  const cuda::GemmKernel& kernel = cuda::find_gemm_kernel("wgmma_binary16");
  CHECK(cuda::detail::unavailable_reason(kernel, 90).empty());
  CHECK(cuda::detail::unavailable_reason(kernel, 100) ==
        "wgmma_binary16: needs compute capability 9.0 and no other, the device has 10.0");
  CHECK(cuda::detail::unavailable_reason(cuda::find_gemm_kernel("mma_sync_binary32"), 70) ==
        "mma_sync_binary32: needs compute capability 7.5 or newer, the device has 7.0");
  if (cuda::available()) return;
  CHECK(cuda::unavailable_reason(kernel) == cuda::unavailable_reason());
  CHECK_THROWS_AS(cuda::gemm(kernel, right_arguments()), std::runtime_error);
}
