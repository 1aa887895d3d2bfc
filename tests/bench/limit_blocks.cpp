#include <bit>

#include "tests/bench/peers.h"

namespace bench {

void scale_blocks(const float* in, std::int8_t* out, std::size_t count) {
  constexpr std::size_t size = 32;
  for (std::size_t first = 0; first < count; first += size) {
    std::uint32_t largest = 0;
    for (std::size_t i = first; i < first + size; ++i) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(in[i]) & 0x7fffffff;
      largest = magnitude > largest ? magnitude : largest;
    }
    // 2^5 over the power of two at or below the largest, so that bytes hold the products.
    const auto factor = std::bit_cast<float>(((254u + 5) << 23) - (largest & 0x7f800000));
    for (std::size_t i = first; i < first + size; ++i) out[i] = static_cast<std::int8_t>(in[i] * factor);
  }
}

}  // namespace bench
