#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/codec.h"

#ifdef __x86_64__

#include <immintrin.h>

namespace fp16 {
namespace {

constexpr std::size_t block_size = 1 << 16;
using Floats = std::array<float, block_size>;
using Halves = std::array<std::uint16_t, block_size>;

template <int direction>
[[gnu::target("avx,f16c")]] void convert_by_hardware(const Floats& in, Halves& out) {
  for (std::size_t i = 0; i < block_size; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(&in[i]), direction | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&out[i]), halves);
  }
}

struct Block {
  Floats floats;
  Halves expected;
  Halves portable;
};

/// The floats whose upper halves are `upper`, in one direction; how many differ from the hardware.
template <int direction>
std::uint64_t count_differences(std::uint32_t upper, Rounding mode, Block& block) {
  for (std::uint32_t lower = 0; lower < block_size; ++lower) {
    block.floats[lower] = std::bit_cast<float>(upper << 16 | lower);
  }
  convert_by_hardware<direction>(block.floats, block.expected);
  std::uint64_t differences = 0;
  for (std::uint32_t lower = 0; lower < block_size; ++lower) {
    differences += convert<binary16, binary32>(upper << 16 | lower, {mode}).bits != block.expected[lower];
  }
  if (mode != Rounding::nearest_even) return differences;

  float_to_half(block.floats, block.portable, {}, {.path = VectorPath::portable});
  for (std::size_t i = 0; i < block_size; ++i) differences += block.portable[i] != block.expected[i];
  return differences;
}

template <int direction>
void check_all_floats(Rounding mode) {
  if (std::ranges::count(available_vector_paths(), VectorPath::avx2_f16c) == 0) {
    MESSAGE("skipped: this processor has no AVX2 with F16C");
    return;
  }
  std::atomic<std::uint32_t> next_block = 0;
  std::atomic<std::uint64_t> differences = 0;
  std::atomic<std::uint32_t> upper_of_a_difference = 0;
  const auto work = [&] {
    const auto block = std::make_unique<Block>();
    for (std::uint32_t upper = next_block++; upper < block_size; upper = next_block++) {
      const std::uint64_t found = count_differences<direction>(upper, mode, *block);
      differences += found;
      if (found != 0) upper_of_a_difference = upper;
    }
  };
  std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::jthread& thread : threads) thread = std::jthread(work);
  threads.clear();
  CAPTURE(upper_of_a_difference.load());
  CHECK(differences == 0);
}

TEST_CASE("all 2^32 floats to half, scalar and portable bulk, against F16C: nearest-even") {
  check_all_floats<_MM_FROUND_TO_NEAREST_INT>(Rounding::nearest_even);
}
TEST_CASE("all 2^32 floats to half against F16C: toward zero") {
  check_all_floats<_MM_FROUND_TO_ZERO>(Rounding::toward_zero);
}
TEST_CASE("all 2^32 floats to half against F16C: toward positive") {
  check_all_floats<_MM_FROUND_TO_POS_INF>(Rounding::toward_positive);
}
TEST_CASE("all 2^32 floats to half against F16C: toward negative") {
  check_all_floats<_MM_FROUND_TO_NEG_INF>(Rounding::toward_negative);
}

}  // namespace
}  // namespace fp16

#endif
