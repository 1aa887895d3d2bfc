#include "experiments/frame/crc32.h"

#include <zlib.h>

namespace experiments {

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  if (bytes.empty()) return before;  // zlib takes a null pointer for the wish to start anew
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const ::Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace experiments
