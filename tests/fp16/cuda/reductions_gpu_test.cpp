#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fp16/arithmetic.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/mix.h"
#include "fp16/cuda/reductions.h"
#include "fp16/sum.h"

namespace cuda = fp16::cuda;

namespace {

/// Finite halves of 2^-8 ... 2^7 in size, of both signs.
std::vector<std::uint16_t> moderate_codes(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = cuda::mix(seed * 0x9e3779b97f4a7c15 + i);
    codes[i] = static_cast<std::uint16_t>((random & 0x83ff) | (7 + (random >> 32) % 16) << 10);
  }
  return codes;
}

bool skipped() {
  if (cuda::available()) return false;
  MESSAGE("skipped: " << cuda::unavailable_reason());
  return true;
}

}  // namespace

TEST_CASE("sums and dot products on the device are the stated trees") {
  if (skipped()) return;
  for (const std::size_t count : {1, 2, 3, 255, 256, 257, 1000, 65537, 100000}) {
    const std::vector<std::uint16_t> a = moderate_codes(count, 3);
    std::vector<std::uint16_t> b = moderate_codes(count, 4);
    for (std::uint16_t& code : b) code -= 6 << 10;  // so that no product overflows
    CHECK(cuda::sum_blocked_tree(a) == fp16::sum_blocked_tree<fp16::binary16, cuda::tree_width>(a).bits);
    std::vector<std::uint16_t> products(count);
    for (std::size_t i = 0; i < count; ++i) products[i] = fp16::multiply<fp16::binary16>(a[i], b[i]).bits;
    CHECK(cuda::dot_blocked_tree(a, b) ==
          fp16::sum_blocked_tree<fp16::binary16, cuda::tree_width>(products).bits);
  }
}

TEST_CASE("threads that add to one address lose nothing") {
  if (skipped()) return;
  // Halves of -1/2 and 1 whose sums in any order are multiples of 1/2 below 1024.
  std::vector<std::uint16_t> values(900, 0x3c00);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 0xb800;
  const std::uint16_t sum = 0x5f08;  // 600 - 150
  using Target = cuda::AtomicTarget;
  for (const Target target : {Target::half_in_global, Target::half_in_shared})
    CHECK(cuda::sum_by_atomics(values, target) == std::array<std::uint16_t, 2>{sum, 0});
  for (const Target target : {Target::half2_in_global, Target::half2_in_shared})
    CHECK(cuda::sum_by_atomics(values, target) ==
          std::array<std::uint16_t, 2>{sum, static_cast<std::uint16_t>(sum | 0x8000)});
  CHECK(cuda::sum_by_atomics({}, Target::half_in_global) == std::array<std::uint16_t, 2>{});
}
