#pragma once

#include <cstdint>

#include "sim/tensor/tensor.h"

namespace sim {

/// A number of the elements of tensors, in their order, which elements that differ by mistake have by a chance of about 2^-53;
/// three that differ on purpose can have it. It is exact in a double, so that ranks can show it to each other. All NaNs count
/// as the same one, as the order of two terms may decide between their payloads.
class Fingerprint {
 public:
  void add(const Tensor& tensor);
  double value() const;

 private:
  std::uint64_t state_ = 0;
};

}  // namespace sim
