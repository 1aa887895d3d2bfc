#pragma once
/// Walking from code to code along the numbers of a format, and counting the steps between two.
///
/// The walk sees every number of the format: nothing is flushed or read as zero. Beyond the largest finite
/// number lies what `infinite_result` gives. Of the attributes, `saturate` and `nan_policy` matter.

#include <cstdint>
#include <limits>

#include "bits.h"
#include "comparison.h"
#include "config.h"
#include "unpacked.h"

namespace fp16 {

namespace detail {

template <const Format& F>
FP16_HD constexpr Result<F> step(Bits<F> a, bool upward, const Attributes& attributes) {
  if (is_nan<F>(a)) return propagate_nan<F>(attributes, a);
  const Bits<F> distance = magnitude<F>(a);
  const bool toward_zero = !is_zero<F>(a) && is_negative<F>(a) == upward;
  if (toward_zero) return {.bits = with_sign<F>(static_cast<Bits<F>>(distance - 1), upward), .flags = {}};
  if (distance >= max_finite_bits<F>) return infinite_result<F>(!upward, attributes);
  return {.bits = with_sign<F>(static_cast<Bits<F>>(distance + 1), !upward), .flags = {}};
}

}  // namespace detail

/// nextUp (IEEE 754-2019 clause 5.3.1): the least number larger than `a`. Of either zero the smallest
/// positive number, of the smallest negative one -0, of -infinity the lowest finite number, of +infinity
/// itself.
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr Result<F> next_up(Code<F> a, const Attributes& attributes = {}) {
  return detail::step<F>(a, true, attributes);
}

/// nextDown: -next_up(-a).
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr Result<F> next_down(Code<F> a, const Attributes& attributes = {}) {
  return detail::step<F>(a, false, attributes);
}

/// The neighbour of `a` on the side of `target`; `target` itself where they are equal, so that
/// next_after(-0, +0) is +0 (C's nextafter; like next_up it raises neither underflow nor, where there are
/// infinities, overflow).
template <const Format& F>
requires(F.has_arithmetic()) FP16_HD
    constexpr Result<F> next_after(Code<F> a, Code<F> target, const Attributes& attributes = {}) {
  if (is_nan<F>(a) || is_nan<F>(target)) return propagate_nan<F>(attributes, a, target);
  const Relation found = relation<F>(a, target);
  if (found == Relation::equal) return {.bits = target, .flags = {}};
  return detail::step<F>(a, found == Relation::less, attributes);
}

/// How many steps of next_up or next_down lead from `a` to `b`, the two zeros being one number; all ones if
/// either is a NaN.
template <const Format& F>
FP16_HD constexpr std::uint64_t ulp_distance(Code<F> a, Code<F> b) {
  if (is_nan<F>(a) || is_nan<F>(b)) return std::numeric_limits<std::uint64_t>::max();
  const auto x = static_cast<std::uint64_t>(ordinal<F>(a));
  const auto y = static_cast<std::uint64_t>(ordinal<F>(b));
  return ordinal<F>(a) < ordinal<F>(b) ? y - x : x - y;
}

}  // namespace fp16
