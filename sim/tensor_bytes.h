#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/tensor.h"

namespace sim {

/// A tensor's storage, in this machine's byte order.
inline std::span<std::byte> bytes_of(Tensor& tensor) {
  switch (tensor.format().size_bytes()) {
    case 2:
      return std::as_writable_bytes(tensor.elements<std::uint16_t>());
    case 4:
      return std::as_writable_bytes(tensor.elements<float>());
    default:
      return std::as_writable_bytes(tensor.elements<double>());
  }
}

}  // namespace sim
