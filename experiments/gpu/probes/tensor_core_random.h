#pragma once
/// The random dot products of tensor_core.h: a mixture, since no single distribution shows every mistake that a
/// tensor core might make. Which distribution a number has depends on number / 32 alone, so that the threads of a
/// warp have the same.

#include <cstdint>

#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/probes/tensor_core_codes.h"
#include "fp16/config.h"

namespace experiments::probes::inputs {

/// About N(0, 1): the sum of four uniform numbers. Everything.
FP16_HD constexpr Unpacked<std::uint64_t> normal_number(RandomWords& random) {
  const std::uint64_t word = random.next();
  std::int64_t sum = -2 * 0xffff;
  for (int shift = 0; shift < 64; shift += 16) sum += static_cast<std::int64_t>(word >> shift & 0xffff);
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  // The standard deviation of the sum is 2^16 / sqrt(3).
  return {.negative = sum < 0, .exponent = -15 - 16, .significand = magnitude << 16 | (random.next() >> 48)};
}

FP16_HD constexpr std::uint16_t normal_half(RandomWords& random) {
  return round_pack<binary16>(normal_number(random)).bits;
}

FP16_HD constexpr std::uint16_t finite_half(RandomWords& random) {
  const auto bits = static_cast<int>(random.next() & 0xffff);
  return as_code((bits & infinity) == infinity ? bits & 0x83ff : bits);
}

FP16_HD constexpr DotProduct normal_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  for (int k = 0; k < shape.depth; ++k) {
    product.a[k] = normal_half(random);
    product.b[k] = normal_half(random);
  }
  const auto addend = normal_number(random);
  product.c = accumulator_code(shape, addend.negative, addend.exponent, addend.significand);
  return product;
}

/// Any finite operands; c within the exponents of products, and of binary16 numbers.
FP16_HD constexpr DotProduct finite_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  for (int k = 0; k < shape.depth; ++k) {
    product.a[k] = finite_half(random);
    product.b[k] = finite_half(random);
  }
  product.c = shape.has_binary16() ? finite_half(random) : random_accumulator(random, shape, -50, 50);
  return product;
}

/// Products that cancel in pairs, exactly or but for their last bits; one pair may be small instead, so that of
/// it remains what the alignment has kept.
FP16_HD constexpr DotProduct cancelling_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  const int distance = 1 << random.below(shape.depth == 8 ? 3 : 4);
  const int level = random.between(-10, 12);
  for (int k = 0; k < shape.depth; ++k) {
    if ((k & distance) != 0) continue;
    const int a = random_half(random, level, level + 3), b = random_half(random, level, level + 3);
    const std::uint64_t word = random.next();
    set_factors(product, k, a, b);
    set_factors(product, k ^ distance, a ^ minus ^ ((word & 7) == 0), b ^ ((word >> 3 & 15) == 0));
  }
  const int small = random.below(shape.depth), lower = random.between(8, 16);
  if (random.flip()) {
    for (const int k : {small, small ^ distance})
      set_random(product, k, random, level - lower, level - lower + 3);
  }
  if (random.flip()) product.c = random_accumulator(random, shape, 2 * level - 30, 2 * level + 4);
  return product;
}

/// A number as c or in powers of two, a tie of the result beside it, and bits around the last one that is kept, to
/// decide the tie or not. All in four neighbouring products.
FP16_HD constexpr DotProduct tied_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  const int k = random.below(shape.depth), top = random.between(-10, 12);
  const bool negative = random.flip();
  const int carry = random.below(2);
  if (carry != 0) {
    product.c = accumulator_code(shape, negative, top, 1);
    set_power(product, k, negative, top);
  } else if (random.below(4) == 0) {
    set_power(product, k, negative, top);
  } else {
    const std::uint64_t trailing = random.flip() ? 0 : random.next() & 0x7fffff;
    product.c = accumulator_code(shape, negative, top - 23, 0x800000 | trailing);
  }
  set_power(product, k ^ 1, random.flip(), top + carry - shape.precision());
  for (const int other : {k ^ 2, k ^ 3}) {
    if (random.flip()) set_random_power(product, other, random, top - 28, top - 11);
  }
  return product;
}

/// Products near 1 and c far from them.
FP16_HD constexpr DotProduct wide_addend_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  for (int k = 0; k < shape.depth; ++k) set_random(product, k, random, -2, 1);
  product.c = shape.has_binary16() ? random_accumulator(random, shape, -24, 15)
                                   : random_accumulator(random, shape, -32, 32);
  return product;
}

/// A few units of 2^-24, the smallest binary16 number, as c or as a subnormal factor; half a unit, a tie; and a bit
/// around the last one that is kept beside them, to decide it. All in four neighbouring products, and of small
/// exponents, so that the lowest exponent that a binary16 accumulator aligns to decides about that bit.
FP16_HD constexpr DotProduct smallest_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  const int k = random.below(shape.depth), units = random.below(6);
  if (random.flip()) {
    product.c = accumulator_code(shape, random.flip(), -24, static_cast<std::uint64_t>(units));
  } else if (random.flip()) {
    set_factors(product, k, units, one);
  } else {
    set_random_power(product, k, random, -29, -18);
  }
  set_power(product, k ^ 1, random.flip(), -25);
  set_random_power(product, k ^ 2, random, -48, -36);
  if (random.flip()) set_factors(product, k ^ 3, 0, random_half(random, -14, 15));
  return product;
}

FP16_HD constexpr DotProduct subnormal_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  for (int k = 0; k < shape.depth; ++k) {
    const int subnormal = static_cast<int>(random.next() & 0x83ff), other = random_half(random, -14, 15);
    if (random.flip()) {
      set_factors(product, k, subnormal, other);
    } else {
      set_factors(product, k, other, subnormal);
    }
    if (random.below(4) == 0) set_factors(product, k, 0, other);
  }
  if (random.flip()) {
    const auto subnormal = static_cast<int>(random.next() & 0x83ff);
    product.c = accumulator_of(shape, as_code(subnormal));
    // A subnormal of binary32 likewise.
    if (!shape.has_binary16() && random.flip()) product.c = static_cast<std::uint32_t>(subnormal) << 13;
  }
  return product;
}

/// Sums around the largest accumulator; in binary16 by products beyond it that cancel, too.
FP16_HD constexpr DotProduct overflowing_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  const int top = random.between(14, 16);
  for (int k = 0; k < shape.depth; ++k) {
    const int exponent = random.between(-4, top);
    product.a[k] = random_half(random, exponent / 2, exponent / 2);
    product.b[k] = random_half(random, exponent - exponent / 2 - 1, exponent - exponent / 2);
  }
  if (random.flip()) {
    const int k = random.below(shape.depth) & ~1, huge = random_half(random, 8, 15);
    set_factors(product, k, huge, huge);
    set_factors(product, k + 1, huge, huge ^ minus);
  }
  if (shape.has_binary16()) {
    const int sign = random.flip() ? minus : 0, below = random.flip() ? 2 : 0x800;
    product.c = as_code(sign | (largest - random.below(below)));
  } else {
    const int lowest_exponent = random.flip() ? 40 : 120;
    product.c = random_accumulator(random, shape, lowest_exponent, 127);
  }
  return product;
}

/// Products of zero alone, and any c.
FP16_HD constexpr DotProduct lone_addend(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  const bool all_negative = random.flip();
  for (int k = 0; k < shape.depth; ++k) {
    const int factor = finite_half(random), sign = all_negative || random.flip() ? minus : 0;
    set_factors(product, k, (factor & minus) ^ sign, factor);
  }
  const std::uint64_t word = random.next();
  // The exponent of every second c is zero.
  product.c = static_cast<std::uint32_t>(shape.has_binary16() ? word & 0xffff : word & 0xffffffff);
  if (random.flip()) product.c &= shape.has_binary16() ? 0x83ff : 0x807fffff;
  if (random.below(4) == 0) product.c &= shape.has_binary16() ? 0x8000 : 0x80000000;
  return product;
}

FP16_HD constexpr int special_half(RandomWords& random) {
  const auto word = static_cast<int>(random.next() & 0xffff);
  switch (random.below(8)) {
    case 0:
      return infinity | (word & minus);
    case 1:
      return infinity | word | 1;
    case 2:
    case 3:
      return word & minus;
    case 4:
      return largest | (word & minus);
    case 5:
      return 1 | (word & minus);
    default:
      return one | (word & minus);
  }
}

/// Infinities, NaNs, zeros and limits now and then; every other number has ordinary terms besides.
FP16_HD constexpr DotProduct special_product(RandomWords& random, const DotShape& shape) {
  DotProduct product;
  if (random.flip()) product = normal_product(random, shape);
  for (int times = random.between(1, 4); times > 0; --times) {
    const int k = random.below(shape.depth);
    const int a = special_half(random), b = special_half(random);
    set_factors(product, k, a, b);
  }
  if (random.flip()) product.c = accumulator_of(shape, as_code(special_half(random)));
  return product;
}

inline constexpr int numbers_of_one_distribution = 32;
/// The shares are sixteenths.
inline constexpr int random_distributions = 16;

FP16_HD constexpr DotProduct random_product(std::uint64_t number, const DotShape& shape) {
  RandomWords random(number);
  switch (number / numbers_of_one_distribution % random_distributions) {
    case 0:
    case 1:
      return normal_product(random, shape);
    case 2:
    case 3:
      return finite_product(random, shape);
    case 4:
    case 5:
    case 6:
      return cancelling_product(random, shape);
    case 7:
    case 8:
      return tied_product(random, shape);
    case 9:
      return wide_addend_product(random, shape);
    case 10:
    case 11:
      return smallest_product(random, shape);
    case 12:
      return subnormal_product(random, shape);
    case 13:
      return overflowing_product(random, shape);
    case 14:
      return lone_addend(random, shape);
    default:
      return special_product(random, shape);
  }
}

}  // namespace experiments::probes::inputs
