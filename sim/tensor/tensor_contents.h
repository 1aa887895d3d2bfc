#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/tensor/tensor.h"

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

/// All elements as Real, exactly.
template <class Real>
std::vector<Real> values_of(const Tensor& tensor) {
  std::vector<Real> values(tensor.size());
  const Real* first = read(tensor, 0, tensor.size(), values);
  if (first != values.data()) values.assign(first, first + tensor.size());
  return values;
}

}  // namespace sim
