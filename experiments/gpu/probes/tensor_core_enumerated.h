#pragma once
/// The enumerated dot products of tensor_core.h.

#include <cstdint>

#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/probes/tensor_core_codes.h"
#include "fp16/config.h"

namespace experiments::probes::inputs {

// Open questions: one with each accumulator.

FP16_HD constexpr DotProduct open_question_product(const DotShape& shape) {
  DotProduct product;
  const int last = shape.depth - 1;  // a further step would make +0 of either zero
  if (shape.has_binary16()) {
    set_factors(product, last, 0x8001, 0x2c00);  // -2^-28
  } else {
    set_factors(product, last, 0, 0x54d4);  // 0 * 77.25
    product.c = 1;                          // 2^-149
  }
  return product;
}

// Structure: `carries` large terms and a small one, `gap` octaves below. Terms are the products and c.

inline constexpr int structure_gaps = 61;
inline constexpr int structure_edges = 5;
inline constexpr int structure_tops = 8;
/// What the large terms do: add up, or cancel in pairs.
inline constexpr int structure_sums = 2;

/// Significands of 11 bits.
FP16_HD constexpr int edge_significand(int i) {
  constexpr int edges[structure_edges] = {0x400, 0x401, 0x555, 0x7fe, 0x7ff};
  return edges[i];
}
/// Exponents of the large terms: of the largest product, of c in binary16, moderate ones, and both sides of the
/// floors of binary16 accumulators.
FP16_HD constexpr int structure_top(int i) {
  constexpr int tops[structure_tops] = {30, 15, 3, 0, -14, -19, -20, -22};
  return tops[i];
}

FP16_HD constexpr std::uint64_t structure_inputs(const DotShape& shape) {
  const auto terms = static_cast<std::uint64_t>(shape.depth + 1);
  return terms * terms * 2 * 2 * structure_edges * structure_edges * structure_edges * structure_sums *
         structure_tops * structure_gaps;
}

/// (-1)^negative * a * b * 2^(exponent - 20), a and b with 11 bits, as the term k: product k, or c.
FP16_HD constexpr void set_term(DotProduct& product, const DotShape& shape, int k, bool negative,
                                int exponent, int a, int b) {
  if (k == shape.depth) {
    product.c = accumulator_code(shape, negative, exponent - 20,
                                 static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    return;
  }
  const int half = exponent >> 1;
  set_factors(product, k, half_code(negative, half, a), half_code(false, exponent - half, b));
}

FP16_HD constexpr DotProduct structure_product(std::uint64_t number, const DotShape& shape) {
  DotProduct product;
  Digits digits(number);
  const int terms = shape.depth + 1;
  const int carries = digits.next(terms) + 1;
  const int small_term = digits.next(terms);
  const bool small_negative = digits.next(2) != 0, negative = digits.next(2) != 0;
  const int a = edge_significand(digits.next(structure_edges)),
            b = edge_significand(digits.next(structure_edges));
  const int large = edge_significand(digits.next(structure_edges));
  const bool cancels = digits.next(structure_sums) != 0;
  const int top = structure_top(digits.next(structure_tops));
  const int gap = digits.next(structure_gaps);
  // With as many carries as terms the small one gives way.
  int done = 0;
  for (int k = 0; k < terms && done < carries; ++k) {
    if (k == small_term && carries < terms) continue;
    set_term(product, shape, k, negative != (cancels && done % 2 != 0), top, large, 0x400);
    ++done;
  }
  if (carries < terms) set_term(product, shape, small_term, small_negative != negative, top - gap, a, b);
  return product;
}

// Specials: every NaN as an operand; every NaN as c; and two products of zeros, infinities, NaNs and limits with
// an accumulator of such.

inline constexpr int nan_codes = 2046;
inline constexpr int nan_partners = 4;
inline constexpr int nan_payloads = 3;  ///< ways to make 23 bits of 10
inline constexpr int special_factors = 8;
inline constexpr int special_addends = 6;

FP16_HD constexpr int nan_code(int i) {
  return (i < nan_codes / 2 ? 0 : minus) | infinity | (i % (nan_codes / 2) + 1);
}

FP16_HD constexpr std::uint64_t operand_nans(const DotShape& shape) {
  return std::uint64_t{2} * nan_codes * nan_partners * 2 * static_cast<std::uint64_t>(shape.depth);
}
FP16_HD constexpr std::uint64_t addend_nans() {
  return std::uint64_t{2} * nan_codes * nan_partners * nan_payloads;
}
FP16_HD constexpr std::uint64_t special_pairs(const DotShape& shape) {
  const auto depth = static_cast<std::uint64_t>(shape.depth);
  return 2 * depth * depth * special_factors * special_factors * special_addends;
}
FP16_HD constexpr std::uint64_t special_inputs(const DotShape& shape) {
  return operand_nans(shape) + addend_nans() + special_pairs(shape);
}

FP16_HD constexpr void set_special(DotProduct& product, int k, int kind) {
  constexpr int a[special_factors] = {infinity, infinity, infinity | minus, infinity,
                                      minus,    one,      largest,          minus};
  constexpr int b[special_factors] = {one, one | minus, 1, 0, infinity, infinity | 1, largest, one};
  set_factors(product, k, a[kind], b[kind]);
}

FP16_HD constexpr DotProduct operand_nan_product(Digits digits, const DotShape& shape, DotProduct product) {
  const int k = digits.next(shape.depth), nan = nan_code(digits.next(nan_codes));
  constexpr int partners[nan_partners] = {0, one, infinity | minus, infinity | 1};
  const int partner = partners[digits.next(nan_partners)];
  if (digits.next(2) != 0) {
    set_factors(product, k, nan, partner);
  } else {
    set_factors(product, k, partner, nan);
  }
  return product;
}

FP16_HD constexpr DotProduct addend_nan_product(Digits digits, const DotShape& shape, DotProduct product) {
  const int nan = nan_code(digits.next(nan_codes)), payload = nan & 0x3ff;
  const int shifted = digits.next(nan_payloads);
  const int payload_of_23 = shifted == 0 ? payload << 13 : shifted == 1 ? payload : payload << 13 | payload;
  product.c = shape.has_binary16() ? static_cast<std::uint32_t>(nan)
                                   : static_cast<std::uint32_t>(nan & minus) << 16 | 0x7f800000u |
                                         static_cast<std::uint32_t>(payload_of_23);
  const int partner = digits.next(nan_partners);
  if (partner > 0) set_special(product, nan % shape.depth, partner);
  return product;
}

FP16_HD constexpr DotProduct special_pair_product(Digits digits, const DotShape& shape, DotProduct product) {
  constexpr int addends[special_addends] = {0, minus, one, infinity, infinity | minus, infinity | minus | 1};
  const int first = digits.next(shape.depth), second = digits.next(shape.depth);
  set_special(product, first, digits.next(special_factors));
  set_special(product, second, digits.next(special_factors));
  product.c = accumulator_of(shape, as_code(addends[digits.next(special_addends)]));
  return product;
}

FP16_HD constexpr DotProduct specials_product(std::uint64_t number, const DotShape& shape) {
  const bool among_others = number % 2 != 0;
  DotProduct product;
  if (among_others) {
    RandomWords random(number);
    for (int k = 0; k < shape.depth; ++k) set_random(product, k, random, -3, 3);
    product.c = random_accumulator(random, shape, -3, 3);
  }
  if (number < operand_nans(shape)) return operand_nan_product(Digits(number / 2), shape, product);
  number -= operand_nans(shape);
  if (number < addend_nans()) return addend_nan_product(Digits(number / 2), shape, product);
  return special_pair_product(Digits((number - addend_nans()) / 2), shape, product);
}

// One product: a, b and c side by side, a in the highest bits.

inline constexpr std::uint64_t one_product_inputs = std::uint64_t{1} << 48;
/// So many consecutive numbers, from a multiple of them on, have the same a and b.
inline constexpr std::uint64_t addends_of_a_product = 1 << 16;

/// A sample of c for a product, of the code `sample` in binary16: half within 40 octaves of the product, a
/// quarter next to what cancels it, the rest any bits.
FP16_HD constexpr std::uint32_t sampled_addend(int a, int b, std::uint64_t number) {
  RandomWords random(number);
  const std::uint64_t word = random.next();
  const int kind = random.below(4);
  const bool finite = (a & infinity) != infinity && (b & infinity) != infinity;
  if (kind == 3 || !finite) return static_cast<std::uint32_t>(word);
  const auto factor_a = unpack<binary16, std::uint64_t>(as_code(a));
  const auto factor_b = unpack<binary16, std::uint64_t>(as_code(b));
  const auto exact = fp16::detail::product(factor_a, factor_b);
  // A product of halves is a binary32 number.
  const std::uint32_t opposite = round_pack<binary32>(exact).bits ^ 0x80000000;
  if (kind == 2) return opposite + static_cast<std::uint32_t>(random.between(-2, 2));
  const auto exponent = static_cast<int>(opposite >> 23 & 0xff) + random.between(-40, 40);
  return static_cast<std::uint32_t>(word & 0x807fffff) | static_cast<std::uint32_t>(exponent & 0xff) << 23;
}

FP16_HD constexpr DotProduct one_product(std::uint64_t number, const DotShape& shape) {
  const auto a = static_cast<int>(number >> 32 & 0xffff), b = static_cast<int>(number >> 16 & 0xffff);
  DotProduct product;
  product.first = (a + b) % shape.depth;
  product.count = 1;
  set_factors(product, product.first, a, b);
  product.c =
      shape.has_binary16() ? static_cast<std::uint32_t>(number & 0xffff) : sampled_addend(a, b, number);
  return product;
}

}  // namespace experiments::probes::inputs
