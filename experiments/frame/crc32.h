#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace experiments {

/// CRC-32 as zlib, gzip and PNG have it (polynomial 0x04c11db7, reflected; RFC 1952, section 8) of the bytes,
/// or, with the CRC-32 of what comes before them, of both: crc32(b, crc32(a)) is that of a and b together.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace experiments
