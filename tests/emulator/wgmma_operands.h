#pragma once
/// Operands of wgmma in shared memory (PTX ISA, "Shared Memory Matrix Layout").

#include "tests/emulator/tensor_tiles.h"

namespace emulator {

/// "Matrix Descriptor Format", in bytes.
struct MatrixDescriptor {
  explicit MatrixDescriptor(std::uint64_t code)
      : start((code & 0x3fff) << 4),
        leading((code >> 16 & 0x3fff) << 4),
        stride((code >> 32 & 0x3fff) << 4),
        base_offset(static_cast<int>(code >> 49 & 7)),
        swizzle_bits((4 - static_cast<int>(code >> 62)) % 4) {}

  std::uint64_t start;
  std::uint64_t leading;
  std::uint64_t stride;
  int base_offset;
  int swizzle_bits;  ///< Swizzle<bits, 4, 3>: 0 none, 1 of 32, 2 of 64, 3 of 128 bytes

  /// Where the 16-bit element lies whose index is `outer` along m or n and `k` along the depth ("Canonical Layouts").
  std::uint64_t address_of(std::uint64_t outer, std::uint64_t k, bool k_major) const {
    const std::uint64_t chunks = std::uint64_t{1} << swizzle_bits;  // of 16 bytes, in a row of the pattern
    const std::uint64_t row = 16 * chunks;
    std::uint64_t offset = 0;
    if (k_major) {
      const std::uint64_t next_chunk = swizzle_bits == 0 ? leading : 16;
      offset = outer % 8 * row + outer / 8 * stride + k % 8 * 2 + k / 8 * next_chunk;
    } else {
      const std::uint64_t next_pattern = swizzle_bits == 0 ? stride : leading;
      const std::uint64_t next_eight_of_k = swizzle_bits == 0 ? leading : stride;
      offset = outer % 8 * 2 + outer / 8 % chunks * 16 + outer / (8 * chunks) * next_pattern + k % 8 * row +
               k / 8 * next_eight_of_k;
    }
    const std::uint64_t address = start + offset;
    return address ^ (address >> 3 & (chunks - 1) << 4);
  }
};

/// tile(i, k) of elements first ... first + count - 1 along m or n, which the tensor cores read for a warp; negated if
/// the instruction asks for it.
inline HalfTile read_operand(Warp& warp, const MatrixDescriptor& descriptor, int first, int count,
                             bool k_major, bool negated) {
  constexpr int depth = 16;
  if (descriptor.base_offset != 0)
    throw Fault(FaultKind::launch_failure,
                "the emulator does not know matrix descriptors with a base offset");
  HalfTile tile(count, depth);
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < depth; ++k) {
      const std::uint64_t address = descriptor.address_of(static_cast<std::uint64_t>(first + i),
                                                          static_cast<std::uint64_t>(k), k_major);
      std::uint16_t code = 0;
      std::memcpy(&code, warp.block.shared.access(address, 2, {.by_async_proxy = true}, warp.index), 2);
      tile(i, k) = negated ? code ^ 0x8000 : code;
    }
  }
  return tile;
}

}  // namespace emulator
