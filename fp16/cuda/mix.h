#pragma once
/// Random words by their numbers, the same on host and device.

#include <cstdint>

#include "fp16/config.h"

namespace fp16::cuda {

/// A bijection that leaves no trace of order (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014, with Stafford's constants).
FP16_HD constexpr std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace fp16::cuda
