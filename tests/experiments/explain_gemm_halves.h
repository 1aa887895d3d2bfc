#pragma once
/// Operands of matrix products for tests.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "fp16/codec.h"

namespace test {

/// Codes of halves of a few binades around 1, with all bits of the significand.
inline std::vector<std::uint16_t> random_halves(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<std::uint16_t> halves(count);
  for (std::uint16_t& half : halves) {
    const std::uint64_t bits = generator();
    half = static_cast<std::uint16_t>((bits & 0x83ff) | (12 + (bits >> 20) % 4) << 10);
  }
  return halves;
}

/// The value of a code.
inline float half_of(std::uint64_t code) {
  return fp16::half_bits_to_float(static_cast<std::uint16_t>(code));
}

/// Values of random_halves.
inline std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  const std::vector<std::uint16_t> halves = random_halves(count, seed);
  std::vector<float> values(count);
  std::ranges::transform(halves, values.begin(), fp16::half_bits_to_float);
  return values;
}

}  // namespace test
