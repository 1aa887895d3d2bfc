#pragma once
/// From the number of an input to a dot product, for the families of tensor_core.h, and to what the model says of
/// it. Pure functions, the same on host and device, and total: a number beyond a family's last is one of its dot
/// products, too.

#include <cstddef>
#include <cstdint>
#include <span>

#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/probes/tensor_core_codes.h"
#include "experiments/gpu/probes/tensor_core_enumerated.h"
#include "experiments/gpu/probes/tensor_core_random.h"
#include "fp16/config.h"
#include "fp16/mma.h"

namespace experiments::probes::inputs {

/// Every operand and every sum is normal, and stays so if a and c are scaled by 2^-3 ... 2^3: either all products
/// have the sign of c, or c is larger than all of them together.
FP16_HD constexpr DotProduct scalable_product(std::uint64_t number, const DotShape& shape) {
  RandomWords random(number);
  DotProduct product;
  const bool one_sign = random.flip(), negative = random.flip();
  for (int k = 0; k < shape.depth; ++k) {
    const int a = random_half(random, -4, 1), b = random_half(random, -4, 1);
    set_factors(product, k, one_sign ? (a & ~minus) | (negative ? minus : 0) : a, one_sign ? b & ~minus : b);
  }
  const int exponent = one_sign ? random.between(-10, 3) : random.between(9, 10);
  product.c = accumulator_code(shape, negative, exponent - 23, 0x800000 | (random.next() >> 41));
  return product;
}

/// Random, but about half of the products are 0 * 0.
FP16_HD constexpr DotProduct sparse_product(std::uint64_t number, const DotShape& shape) {
  DotProduct product = random_product(number, shape);
  const std::uint64_t zeros = cuda::mix(~number);
  for (int k = 0; k < shape.depth; ++k) {
    if ((zeros >> k & 1) != 0) set_factors(product, k, 0, 0);
  }
  return product;
}

FP16_HD constexpr DotProduct dot_product(DotFamily family, std::uint64_t number, const DotShape& shape) {
  switch (family) {
    case DotFamily::open_questions:
      return open_question_product(shape);
    case DotFamily::structure:
      return structure_product(number, shape);
    case DotFamily::specials:
      return specials_product(number, shape);
    case DotFamily::one_product:
      return one_product(number, shape);
    case DotFamily::scaling:
      return scalable_product(number, shape);
    case DotFamily::zero_padding:
      return sparse_product(number, shape);
    default:
      return random_product(number, shape);
  }
}

/// `mma_dot`, which need not look at products outside of [first, first + count): in a step they are 0 * 0.
template <const Format& Accumulator>
FP16_HD constexpr Bits<Accumulator> model_dot(const TensorCore& core, int depth, const DotProduct& product) {
  auto sum = static_cast<Bits<Accumulator>>(product.c);
  for (int k = 0; k < depth; k += core.products_per_step) {
    const int last = product.first + product.count;
    const int end = k + core.products_per_step < last ? k + core.products_per_step : last;
    const int begin = k > product.first ? k : product.first;
    const std::size_t count = end < begin ? 0 : static_cast<std::size_t>((end < depth ? end : depth) - begin);
    sum = mma_step<Accumulator>(core, {product.a + begin, count}, {product.b + begin, count}, sum);
  }
  return sum;
}

// Families without model: dot products derived from one, and what its result says of theirs.

/// How many are derived. `step` is the products of a step of the model, at most the depth; `places` the elements
/// of the instruction's result.
FP16_HD constexpr int variants(DotFamily family, int step, int places) {
  switch (family) {
    case DotFamily::permutation:
      return step - 1;
    case DotFamily::negation:
      return 1;
    case DotFamily::scaling:
      return 6;
    case DotFamily::position:
      return places;
    case DotFamily::zero_padding:
      return 4;
    case DotFamily::repetition:
      return 2;
    default:
      return 0;
  }
}

/// -3, -2, -1, 1, 2, 3
FP16_HD constexpr int scaling_exponent(int variant) {
  return variant < 3 ? variant - 3 : variant - 2;
}

template <const Format& F>
FP16_HD constexpr Bits<F> scaled_code(Bits<F> code, int exponent) {
  return static_cast<Bits<F>>(static_cast<std::int64_t>(code) +
                              exponent * (std::int64_t{1} << F.trailing_bits()));
}

template <const Format& Accumulator>
FP16_HD constexpr DotProduct derived_product(DotFamily family, int variant, std::uint64_t number, int depth,
                                             const DotProduct& product) {
  DotProduct derived = product;
  const std::uint64_t random = cuda::mix(number * 8 + static_cast<std::uint64_t>(variant));
  for (int k = 0; k < depth; ++k) {
    if (family == DotFamily::permutation) {
      derived.a[k] = product.a[k ^ (variant + 1)];
      derived.b[k] = product.b[k ^ (variant + 1)];
    } else if (family == DotFamily::negation) {
      derived.a[k] = fp16::negate<binary16>(product.a[k]);
    } else if (family == DotFamily::scaling) {
      derived.a[k] = scaled_code<binary16>(product.a[k], scaling_exponent(variant));
    } else if (family == DotFamily::zero_padding && product.a[k] == 0 && product.b[k] == 0) {
      const auto bits = static_cast<int>(cuda::mix(random + static_cast<std::uint64_t>(k)) >> 40);
      const int factor = bits & (0xffff ^ 0x400);  // finite
      // In the first variant every such product is -0.
      const int zero = variant == 0 ? ~factor & minus : bits >> 1 & minus;
      const bool swapped = (bits >> 17 & 1) != 0;
      set_factors(derived, k, swapped ? zero : factor, swapped ? factor : zero);
    }
  }
  const auto c = static_cast<Bits<Accumulator>>(product.c);
  if (family == DotFamily::negation) derived.c = fp16::negate<Accumulator>(c);
  if (family == DotFamily::scaling) derived.c = scaled_code<Accumulator>(c, scaling_exponent(variant));
  return derived;
}

/// What `found` of the derived product has to be if the product's own result is `result`.
template <const Format& Accumulator>
FP16_HD constexpr Bits<Accumulator> derived_result(DotFamily family, int variant, Bits<Accumulator> result,
                                                   Bits<Accumulator> found) {
  if (family == DotFamily::scaling) return scaled_code<Accumulator>(result, scaling_exponent(variant));
  if (family != DotFamily::negation || is_nan<Accumulator>(result)) return result;
  // A sum of zero is +0 in any case, one rounded to zero keeps its sign.
  if (fp16::is_zero<Accumulator>(result) && fp16::is_zero<Accumulator>(found)) return found;
  return fp16::negate<Accumulator>(result);
}

}  // namespace experiments::probes::inputs
