#pragma once
/// The remainder of a division: exact in every format, however large the quotient.

#include <cstdint>

#include "config.h"
#include "unpacked.h"

namespace fp16 {

namespace detail {

/// |a| = quotient * |b| + |rest|, 0 <= |rest| < |b|; `divisor` is |b| in the units of the rest's significand.
struct Division {
  bool quotient_is_odd;
  Unpacked<std::uint64_t> rest;
  std::uint64_t divisor;
};

/// `a` and `b` are finite, `b` is not zero.
template <const Format& F>
FP16_HD constexpr Division divide_to_integer(Bits<F> a, Bits<F> b) {
  Unpacked<std::uint64_t> rest = unpack<F, std::uint64_t>(a);
  const Unpacked<std::uint64_t> by = unpack<F, std::uint64_t>(b);
  if (rest.exponent < by.exponent) {
    // Only with neighbouring exponents can |a| reach |b| / 2; two suffice to say that it does not.
    const int shift = by.exponent - rest.exponent < 2 ? 1 : 2;
    return {.quotient_is_odd = false, .rest = rest, .divisor = by.significand << shift};
  }
  bool odd = (rest.significand / by.significand & 1) != 0;
  rest.significand %= by.significand;
  constexpr int room = 64 - F.precision;
  while (rest.exponent > by.exponent) {
    const int shift = rest.exponent - by.exponent < room ? rest.exponent - by.exponent : room;
    const std::uint64_t scaled = rest.significand << shift;
    odd = (scaled / by.significand & 1) != 0;
    rest.significand = scaled % by.significand;
    rest.exponent -= shift;
  }
  return {.quotient_is_odd = odd, .rest = rest, .divisor = by.significand};
}

template <const Format& F, typename Choose>
FP16_HD constexpr Result<F> remainder(Bits<F> a, Bits<F> b, const Attributes& attributes, Choose choose) {
  a = read_operand<F>(a, attributes);
  b = read_operand<F>(b, attributes);
  if (is_nan<F>(a) || is_nan<F>(b)) return propagate_nan<F>(attributes, a, b);
  if (is_infinite<F>(a) || is_zero<F>(b)) return invalid_operation<F>(attributes);
  if (is_infinite<F>(b)) return round_pack<F>(unpack<F, std::uint64_t>(a), attributes);
  return round_pack<F>(choose(divide_to_integer<F>(a, b)), attributes);
}

}  // namespace detail

/// a - b * n for the integer n nearest to a / b, the even one of two (IEEE 754-2019 clause 5.3.1). Exact: of
/// the attributes, only those of NaNs and subnormal numbers matter. A zero has the sign of `a`; for infinite
/// `b` the result is `a`. Invalid for infinite `a` or zero `b`.
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr Result<F> remainder(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::remainder<F>(a, b, attributes, [](const detail::Division& division) {
    Unpacked<std::uint64_t> rest = division.rest;
    const std::uint64_t complement = division.divisor - rest.significand;
    if (rest.significand > complement || (rest.significand == complement && division.quotient_is_odd)) {
      rest.negative = !rest.negative;
      rest.significand = complement;
    }
    return rest;
  });
}

/// a - n b with n = a / b rounded toward zero: the result has the sign of `a` and is smaller than |b| (C's
/// fmod).
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr Result<F> fmod(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::remainder<F>(a, b, attributes,
                              [](const detail::Division& division) { return division.rest; });
}

}  // namespace fp16
