#include "fp16/cuda/reductions.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "fp16/cuda/device.h"

namespace cuda = fp16::cuda;

TEST_CASE("reductions: without a device one line says so") {
  if (cuda::available()) return;
  const std::array<std::uint16_t, 2> codes{0x3c00, 0x3c00};
  const std::string reason = cuda::unavailable_reason();
  CHECK(reason.find("CUDA") != std::string::npos);
  CHECK(reason.find('\n') == std::string::npos);
  CHECK_THROWS_AS(cuda::sum_blocked_tree(codes), std::runtime_error);
  CHECK_THROWS_AS(cuda::dot_blocked_tree(codes, codes), std::runtime_error);
  CHECK_THROWS_AS(cuda::sum_by_atomics(codes, cuda::AtomicTarget::half_in_shared), std::runtime_error);
}
