#pragma once
/// Dot products with a stated order and rounding, on codes of any format with arithmetic, and the exact dot
/// product, which needs neither.
///
/// a and b are of equal length; chains go through k = 0, 1, 2, ... and start from +0, which is also the
/// product of nothing. `attributes` hold for every step (stochastic rounding would use the same random bits
/// in each of them, so that it wants a loop of its own). Flags are the union over all steps.
///
/// Error bounds are those of Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, 2002,
/// section 3.1, for rounding to nearest: u is the unit roundoff 2^-p, gamma(n) = n u / (1 - n u) with
/// n u < 1, S the sum of all |a[k] b[k]|, and e = 2^(emin_subnormal - 1) the largest error of a product that
/// underflows. They hold unless a step overflows, and with gradual underflow: `flush_to_zero` may lose
/// up to the smallest normal number in each step, `denormals_are_zero` each product of a subnormal operand. In
/// every rounding but to nearest u becomes 2u, and e 2e.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "arithmetic.h"
#include "codec.h"
#include "config.h"
#include "exact_accumulator.h"
#include "sum.h"

namespace fp16 {

namespace detail {

/// The operand in a format that contains its own: exact, and infinities stay what they are.
template <const Format& To, const Format& From>
FP16_HD constexpr Result<To> widened(Bits<From> bits, const Attributes& attributes) {
  static_assert(contains(To, From));
  if constexpr (To == From) {
    return {.bits = bits, .flags = {}};
  } else {
    return convert<To, From>(
        bits, {.denormals_are_zero = attributes.denormals_are_zero, .nan_policy = attributes.nan_policy});
  }
}

}  // namespace detail

/// c = a[k] * b[k] + c, one rounding to Accumulator a step; the products are exact. With Accumulator = F the
/// chain of fused multiply-adds in the format itself. With binary32 for halves "FP32 accumulation": a product
/// of two halves has 22 digits and lies in 2^-48 .. 2^32 or is zero, so that it is a binary32 number, and the
/// step is a rounded addition in binary32; the result is not yet rounded to F. Error at most
/// gamma(n) S + n (1 + gamma(n)) e, with u and e of Accumulator; for halves in binary32 nothing underflows,
/// and it is gamma(n-1) S.
template <const Format& F, const Format& Accumulator = F>
FP16_HD constexpr Result<Accumulator> dot_fma(std::span<const Bits<F>> a, std::span<const Bits<F>> b,
                                              const Attributes& attributes = {}) {
  Result<Accumulator> sum{0, {}};
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Result<Accumulator> x = detail::widened<Accumulator, F>(a[k], attributes);
    const Result<Accumulator> y = detail::widened<Accumulator, F>(b[k], attributes);
    const Result<Accumulator> next = fma<Accumulator>(x.bits, y.bits, sum.bits, attributes);
    sum = {.bits = next.bits, .flags = sum.flags | x.flags | y.flags | next.flags};
  }
  return sum;
}

/// c = c + a[k] * b[k], two roundings a step: the product's and the sum's. Error at most
/// gamma(n) S + n (1 + gamma(n)) e.
template <const Format& F>
FP16_HD constexpr Result<F> dot_mul_add(std::span<const Bits<F>> a, std::span<const Bits<F>> b,
                                        const Attributes& attributes = {}) {
  const detail::FlaggedArithmetic<F> arithmetic{attributes};
  Result<F> sum{0, {}};
  for (std::size_t k = 0; k < a.size(); ++k) sum = arithmetic.plus(sum, multiply<F>(a[k], b[k], attributes));
  return sum;
}

/// `dot_fma` in binary32, its result rounded once more, to F.
template <const Format& F>
FP16_HD constexpr Result<F> dot_binary32(std::span<const Bits<F>> a, std::span<const Bits<F>> b,
                                         const Attributes& attributes = {}) {
  const Result<binary32> sum = dot_fma<F, binary32>(a, b, attributes);
  Result<F> result = convert<F, binary32>(sum.bits, attributes);
  result.flags |= sum.flags;
  return result;
}

/// The exact dot product, rounded once to the format To: the same for every order. Special values as in
/// `ExactAccumulator`. At most 2^ExactAccumulator<From>::max_terms_log2 products: 2^47 of halves, which are
/// added up in 128 bits, and never less than 2^40.
template <const Format& To, const Format& From = To>
FP16_HD constexpr Result<To> dot_exact(std::span<const Bits<From>> a, std::span<const Bits<From>> b,
                                       const Attributes& attributes = {}) {
  ExactAccumulator<From> sum;
  for (std::size_t k = 0; k < a.size(); ++k)
    sum.add_product(read_operand<From>(a[k], attributes), read_operand<From>(b[k], attributes));
  return sum.template rounded<To>(attributes);
}

/// A way to add up products of two arrays.
template <const Format& F>
struct DotOrder {
  std::string_view name;
  Result<F> (*dot)(std::span<const Bits<F>> a, std::span<const Bits<F>> b, const Attributes& attributes);
};

/// For formats that binary32 contains. A new order is one row.
template <const Format& F>
inline constexpr std::array dot_orders{
    DotOrder<F>{"fma", dot_fma<F>},
    DotOrder<F>{"mul_add", dot_mul_add<F>},
    DotOrder<F>{"binary32", dot_binary32<F>},
    DotOrder<F>{"exact", dot_exact<F, F>},
};

}  // namespace fp16
