#include "sim/optimizers/tensor_operations.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

#include "fp16/codec.h"

namespace {

/// Whether the twin gives what encoding and decoding give; of NaNs only that they are NaNs.
template <const fp16::Format& F>
bool agrees(std::uint32_t bits) {
  const float value = std::bit_cast<float>(bits);
  const float got = sim::RoundedResult<F>{}(value);
  if (std::isnan(value)) return std::isnan(got);
  const auto expected = static_cast<float>(fp16::decode<F>(fp16::encode<F>(value).bits));
  return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected);
}

template <const fp16::Format& F>
int differences() {
  int count = 0;
  // Every number of the format and every midpoint of two, with the floats beside them, of both signs.
  constexpr int dropped = 24 - F.precision;
  for (std::uint32_t magnitude = 0; magnitude < 0x7f800000; magnitude += 1u << (dropped - 1)) {
    for (const std::uint32_t near : {magnitude - 1, magnitude, magnitude + 1}) {
      count += !agrees<F>(near & 0x7fffffff) + !agrees<F>(near | 0x80000000);
    }
  }
  // Midpoints of subnormal numbers of binary16, which have more bits behind the last.
  for (std::uint32_t half_units = 0; half_units < 4096; ++half_units) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(half_units) * 0x1p-25f);
    for (const std::uint32_t near : {bits - 1, bits, bits + 1}) count += !agrees<F>(near & 0x7fffffff);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i) count += !agrees<F>(static_cast<std::uint32_t>(random()));
  for (const std::uint32_t special : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u, 0xffffffffu})
    count += !agrees<F>(special);
  return count;
}

}  // namespace

TEST_CASE("tensor operations: results round to binary16 as fp16::encode rounds them") {
  CHECK(differences<fp16::binary16>() == 0);
}

TEST_CASE("tensor operations: results round to bfloat16 as fp16::encode rounds them") {
  CHECK(differences<fp16::bfloat16>() == 0);
}
