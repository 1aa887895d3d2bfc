#include "experiments/gpu/gpu_throughput/gradient_values.h"

#include <bit>

#include "fp16/cuda/mix.h"

namespace experiments::gpu_throughput {
namespace {

namespace cuda = fp16::cuda;

/// Exponents in a heap 24 wide, by the number of ones in as many bits.
std::uint64_t heaped_exponent(std::uint64_t random) {
  return static_cast<std::uint64_t>(std::popcount(random & 0xffffff));
}

}  // namespace

std::vector<float> gradient_floats(std::size_t count) {
  std::vector<float> values(count);
  constexpr std::uint64_t lowest = 127 - 26;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = cuda::mix(i + 1);
    const std::uint64_t exponent = lowest + heaped_exponent(random >> 32);
    const auto bits = static_cast<std::uint32_t>((random & 0x807fffff) | exponent << 23);
    values[i] = i % 65521 == 65520  ? std::bit_cast<float>(bits | 0x7f800000)
                : random >> 60 == 0 ? 0.0f
                                    : std::bit_cast<float>(bits);
  }
  return values;
}

std::vector<std::uint16_t> gradient_halves(std::size_t count) {
  std::vector<std::uint16_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = cuda::mix(~i);
    const std::uint64_t heap = heaped_exponent(random >> 32), lowest = 9;
    // The lower part of the heap are subnormals: their leading digits are zeros.
    const std::uint64_t code =
        heap >= lowest ? (random & 0x3ff) | (heap - lowest + 1) << 10 : (random & 0x3ff) >> (lowest - heap);
    codes[i] = static_cast<std::uint16_t>((random & 0x8000) | code);
    if (random >> 60 == 0) codes[i] = 0;
    if (i % 65521 == 65520) codes[i] = static_cast<std::uint16_t>(codes[i] | 0x7c00);
  }
  return codes;
}

}  // namespace experiments::gpu_throughput
