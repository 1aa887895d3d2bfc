/// Built several times with different optimisation and instruction sets: each build must find the same bits.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "fp16/elementary.h"

namespace fp16 {
namespace {

/// FNV-1a over the bits of `function` at every 16381st binary32, computed by a loop that may be vectorised.
template <float (*function)(float)>
std::uint64_t hash_of_slice() {
  constexpr std::uint32_t stride = 16381;
  std::array<float, 1024> values;
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::uint64_t bits = 0; bits < 0x100000000;) {
    for (float& value : values) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      bits += stride;
    }
    for (float& value : values) value = function(value);
    for (float value : values) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3u;
  }
  return hash;
}

TEST_CASE("the bits of the elementary functions") {
  CHECK(hash_of_slice<exp>() == 0xdb4ffc433a62c357);
  CHECK(hash_of_slice<log>() == 0xdaa82a3520ce2bf6);
  CHECK(hash_of_slice<sigmoid>() == 0x00a273e2939355aa);
}

}  // namespace
}  // namespace fp16
