#pragma once
/// From the number of an input to its operands; see `Sweep`.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "experiments/gpu/probes/device_operations.h"
#include "fp16/codec.h"
#include "fp16/config.h"
#include "fp16/cuda/mix.h"
#include "fp16/half.h"

namespace experiments::probes {

using fp16::binary16;
using fp16::binary32;
using fp16::binary64;
using fp16::convert;
using fp16::half;  // not the global one of cuda_fp16.h
using fp16::is_infinite;
using fp16::is_nan;
namespace cuda = fp16::cuda;

/// The share of one call in the digest of a sweep.
FP16_HD constexpr std::uint64_t digest_of(std::uint64_t index, std::uint64_t first, std::uint64_t second) {
  return cuda::mix(cuda::mix(cuda::mix(index + 0x9e3779b97f4a7c15) + first) + second);
}

/// The input whose operands the second number of a packed call has.
FP16_HD constexpr std::uint64_t partner(std::uint64_t index, int bits) {
  return (index * 0xd1342543de82ef95 + 0x5851f42d4c957f2d) & ((std::uint64_t{1} << bits) - 1);
}

/// Inputs of an operand too wide to exhaust.
inline constexpr int sampled_index_bits = 24;

/// Around each finite half x three doubles at x and three at the midpoint to the half next in magnitude: all
/// points where a rounding in any direction changes, and their neighbours on both sides. In place of infinity
/// those around 2^16, which would follow the largest half, and around infinity. Then random bits, of which
/// every second double is in the range of half.
FP16_HD constexpr double sampled_double(std::uint64_t index) {
  constexpr std::uint64_t boundaries = 6 * 65536;
  if (index >= boundaries) {
    const std::uint64_t random = cuda::mix(index);
    if (index % 2 == 0) return std::bit_cast<double>(random);
    const std::uint64_t exponent = 1023 - 30 + (random >> 52) % 50;
    return std::bit_cast<double>((random & 0x800fffffffffffff) | exponent << 52);
  }
  const auto code = static_cast<std::uint16_t>(index / 6);
  const std::uint64_t exact = convert<binary64, binary16>(code).bits;
  if (is_infinite<binary16>(code)) {
    const std::uint64_t sign = exact & std::uint64_t{1} << 63;
    const std::uint64_t point = index % 6 < 3 ? sign | std::bit_cast<std::uint64_t>(0x1p16) : exact;
    return std::bit_cast<double>(point + index % 3 - 1);
  }
  if (is_nan<binary16>(code)) return std::bit_cast<double>(exact);
  // Beyond the largest finite half the next one would be 2^16.
  const int exponent = (code >> 10 & 31) == 0 ? -14 : (code >> 10 & 31) - 15;
  const double half_ulp = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent - 11) << 52);
  const double value = std::bit_cast<double>(exact);
  const double point = index % 6 < 3                 ? value
                       : value < 0 || code == 0x8000 ? value - half_ulp
                                                     : value + half_ulp;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(point) + index % 3 - 1);
}

/// All of -2^19 ... 2^19 - 1, or 0 ... 2^20 - 1 without a sign, among which are all the points where a rounding
/// to a half changes; the powers of two, their negatives, and the neighbours of both; then random bits of every
/// size from 16 to 64.
template <typename Integer>
FP16_HD constexpr Integer sampled_integer(std::uint64_t index) {
  constexpr std::uint64_t small = std::uint64_t{1} << 20, powers = 64 * 6;
  if (index < small) return static_cast<Integer>(index - (std::is_signed_v<Integer> ? small / 2 : 0));
  if (index < small + powers) {
    const std::uint64_t point = index - small, power = std::uint64_t{1} << point / 6;
    return static_cast<Integer>((point / 3 % 2 == 0 ? power : -power) + point % 3 - 1);
  }
  const std::uint64_t random = cuda::mix(index);
  return static_cast<Integer>(random) >> (index % 48);
}

template <typename Value>
FP16_HD constexpr Value operand(std::uint64_t code) {
  if constexpr (std::is_same_v<Value, double>) {
    return sampled_double(code);
  } else if constexpr (std::is_same_v<Value, HalfPair>) {
    return {operand<half>(code), operand<half>(partner(code, 16))};
  } else if constexpr (sizeof(Value) == 8) {
    return sampled_integer<Value>(code);
  } else if constexpr (std::is_same_v<Value, half>) {
    return half::from_bits(static_cast<std::uint16_t>(code));
  } else if constexpr (std::is_same_v<Value, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code));
  } else {
    return static_cast<Value>(code);
  }
}

template <typename Value>
inline constexpr int operand_index_bits = sizeof(Value) == 8 ? sampled_index_bits
                                          : std::is_same_v<Value, HalfPair>
                                              ? 16
                                              : 8 * static_cast<int>(sizeof(Value));

template <typename Signature>
inline constexpr int index_bits = 0;
template <typename Value, typename... Operands>
inline constexpr int index_bits<Value(Operands...)> = (operand_index_bits<Operands> + ...);

}  // namespace experiments::probes
