#pragma once
/// Internal to philox: what an instruction set contributes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "fp16/philox.h"

namespace fp16::detail {

/// Words that a kernel makes at a time.
inline constexpr std::size_t philox_group = 64;
/// Words of whole groups that hold `count` words from any index on, which may be the last of four in its block.
constexpr std::size_t philox_buffer_size(std::size_t count) {
  return (count + 3 + philox_group - 1) / philox_group * philox_group;
}

/// The words of the blocks from `number` on, `groups` groups of them.
using PhiloxKernel = void (*)(const Philox& philox, std::uint64_t number, std::uint32_t* out,
                              std::size_t groups);

void philox_portable(const Philox& philox, std::uint64_t number, std::uint32_t* out, std::size_t groups);
void philox_avx2(const Philox& philox, std::uint64_t number, std::uint32_t* out, std::size_t groups);
void philox_avx512(const Philox& philox, std::uint64_t number, std::uint32_t* out, std::size_t groups);
void philox_neon(const Philox& philox, std::uint64_t number, std::uint32_t* out, std::size_t groups);

PhiloxKernel philox_kernel(VectorPath path);

/// A pointer into `buffer`, of philox_buffer_size(count) words, to the `count` words from index `first` on.
inline const std::uint32_t* fill_buffer(PhiloxKernel kernel, const Philox& philox, std::uint64_t first,
                                        std::size_t count, std::uint32_t* buffer) {
  const std::size_t skipped = first % 4;
  kernel(philox, first / 4, buffer, (skipped + count + philox_group - 1) / philox_group);
  return buffer + skipped;
}

}  // namespace fp16::detail
