#pragma once
/// What the inputs of tensor-core instructions are made of; see tensor_core_inputs.h.

#include <cstdint>

#include "experiments/gpu/probes/index.h"
#include "experiments/gpu/probes/tensor_core.h"
#include "fp16/codec.h"
#include "fp16/config.h"
#include "fp16/unpacked.h"

namespace experiments::probes {

using fp16::Bits;
using fp16::Format;

namespace inputs {

using fp16::round_pack;
using fp16::Rounding;
using fp16::unpack;
using fp16::Unpacked;

/// What a dot product has to fit.
struct DotShape {
  int depth;
  AccumulatorFormat accumulator;

  FP16_HD constexpr bool has_binary16() const { return accumulator == AccumulatorFormat::binary16; }
  FP16_HD constexpr int precision() const { return has_binary16() ? binary16.precision : binary32.precision; }
};

/// A stream of random words that belongs to a number: SplitMix64, its start mixed from the number.
class RandomWords {
 public:
  FP16_HD constexpr explicit RandomWords(std::uint64_t number) : state_(cuda::mix(number + increment)) {}

  FP16_HD constexpr std::uint64_t next() { return cuda::mix(state_ += increment); }
  /// 0 ... count - 1
  FP16_HD constexpr int below(int count) {
    return static_cast<int>((next() >> 32) * static_cast<std::uint64_t>(count) >> 32);
  }
  FP16_HD constexpr int between(int low, int high) { return low + below(high - low + 1); }
  FP16_HD constexpr bool flip() { return next() >> 63 != 0; }

 private:
  static constexpr std::uint64_t increment = 0x9e3779b97f4a7c15;
  std::uint64_t state_;
};

/// The digits of a number in a mixed radix, lowest first.
class Digits {
 public:
  FP16_HD constexpr explicit Digits(std::uint64_t number) : rest_(number) {}

  FP16_HD constexpr int next(int radix) {
    const auto divisor = static_cast<std::uint64_t>(radix);
    const auto digit = static_cast<int>(rest_ % divisor);
    rest_ /= divisor;
    return digit;
  }

 private:
  std::uint64_t rest_;
};

inline constexpr int minus = 0x8000;
inline constexpr int one = 0x3c00;
inline constexpr int infinity = 0x7c00;
inline constexpr int largest = 0x7bff;

FP16_HD constexpr std::uint16_t as_code(int bits) {
  return static_cast<std::uint16_t>(bits);
}

/// (-1)^negative * significand * 2^(exponent - 10) with 2^10 <= significand < 2^11: truncated where it is
/// subnormal; an exponent beyond 15 counts as 15.
FP16_HD constexpr std::uint16_t half_code(bool negative, int exponent, int significand) {
  const int sign = negative ? minus : 0;
  if (exponent < binary16.emin()) {
    const int shift = binary16.emin() - exponent;
    return as_code(sign | (shift > 10 ? 0 : significand >> shift));
  }
  const int biased = (exponent > binary16.emax() ? binary16.emax() : exponent) + binary16.bias();
  return as_code(sign | biased << 10 | (significand & 0x3ff));
}

/// (-1)^negative * significand * 2^exponent in the accumulator's format, toward zero.
FP16_HD constexpr std::uint32_t accumulator_code(const DotShape& shape, bool negative, int exponent,
                                                 std::uint64_t significand) {
  const Unpacked<std::uint64_t> value{.negative = negative, .exponent = exponent, .significand = significand};
  if (shape.has_binary16()) return round_pack<binary16>(value, {Rounding::toward_zero}).bits;
  return round_pack<binary32>(value, {Rounding::toward_zero}).bits;
}

/// A half as an accumulator: exact, but for the payload of a NaN.
FP16_HD constexpr std::uint32_t accumulator_of(const DotShape& shape, std::uint16_t code) {
  return shape.has_binary16() ? code : convert<binary32, binary16>(code).bits;
}

FP16_HD constexpr void set_factors(DotProduct& product, int k, int a, int b) {
  product.a[k] = as_code(a);
  product.b[k] = as_code(b);
}

/// (-1)^negative * 2^exponent as the product k; the exponent is at most 30.
FP16_HD constexpr void set_power(DotProduct& product, int k, bool negative, int exponent) {
  const int half = exponent >> 1;
  set_factors(product, k, half_code(negative, half, 0x400), half_code(false, exponent - half, 0x400));
}

// No expression below, or where these are called, takes two words: in which order it would is left to the compiler,
// and host and device differ.

FP16_HD constexpr std::uint16_t random_half(RandomWords& random, int lowest_exponent, int highest_exponent) {
  const std::uint64_t word = random.next();
  return half_code((word & 1) != 0, random.between(lowest_exponent, highest_exponent),
                   static_cast<int>(0x400 | (word >> 1 & 0x3ff)));
}

/// Two random factors.
FP16_HD constexpr void set_random(DotProduct& product, int k, RandomWords& random, int lowest_exponent,
                                  int highest_exponent) {
  product.a[k] = random_half(random, lowest_exponent, highest_exponent);
  product.b[k] = random_half(random, lowest_exponent, highest_exponent);
}

/// A power of two of random sign.
FP16_HD constexpr void set_random_power(DotProduct& product, int k, RandomWords& random, int lowest_exponent,
                                        int highest_exponent) {
  const bool negative = random.flip();
  set_power(product, k, negative, random.between(lowest_exponent, highest_exponent));
}

/// An accumulator of random significand.
FP16_HD constexpr std::uint32_t random_accumulator(RandomWords& random, const DotShape& shape,
                                                   int lowest_exponent, int highest_exponent) {
  const std::uint64_t word = random.next();
  return accumulator_code(shape, (word & 1) != 0, random.between(lowest_exponent, highest_exponent) - 23,
                          0x800000 | (word >> 1 & 0x7fffff));
}

}  // namespace inputs

}  // namespace experiments::probes
