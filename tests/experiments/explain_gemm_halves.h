#pragma once
/// Operands of matrix products for tests.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

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

}  // namespace test
