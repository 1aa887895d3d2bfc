#pragma once
/// Comparisons of codes.

#include <compare>

#include "fp16/bits.h"
#include "fp16/config.h"

namespace fp16 {

/// IEEE order: -0 equals +0, a NaN is unordered with everything.
template <const Format& F>
FP16_HD constexpr std::partial_ordering compare(Bits<F> a, Bits<F> b) {
  if (is_nan<F>(a) || is_nan<F>(b)) return std::partial_ordering::unordered;
  if (is_zero<F>(a) && is_zero<F>(b)) return std::partial_ordering::equivalent;
  if (is_negative<F>(a) != is_negative<F>(b)) return is_negative<F>(b) <=> is_negative<F>(a);
  return is_negative<F>(a) ? b <=> a : a <=> b;
}

}  // namespace fp16
