#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "fp16/bulk.h"
#include "sim/optimizers/tensor_operations.h"

namespace {

/// All 2^32 floats, against the conversion over arrays, which is proven against the scalar one elsewhere.
template <const fp16::Format& F>
std::uint64_t differences() {
  constexpr std::uint32_t piece = 1u << 16;
  std::vector<float> values(piece), expected(piece);
  std::vector<std::uint16_t> codes(piece);
  std::uint64_t count = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += piece) {
    for (std::uint32_t i = 0; i < piece; ++i)
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first) + i);
    fp16::encode<F>(values, codes);
    fp16::decode<F>(codes, expected);
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < piece; ++i) {
      const float got = sim::RoundedResult<F>{}(values[i]);
      const bool both_nan = (got != got) & (expected[i] != expected[i]);
      wrong += (std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(expected[i])) & !both_nan;
    }
    count += wrong;
  }
  return count;
}

}  // namespace

TEST_CASE("tensor operations: all floats round to binary16 as encode rounds them") {
  CHECK(differences<fp16::binary16>() == 0);
}

TEST_CASE("tensor operations: all floats round to bfloat16 as encode rounds them") {
  CHECK(differences<fp16::bfloat16>() == 0);
}
