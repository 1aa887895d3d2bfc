#pragma once
/// The class of a code (IEEE 754-2019 clause 5.7.2). The single questions, is_nan, is_infinite and so on, are
/// in bits.h.

#include "bits.h"
#include "config.h"

namespace fp16 {

/// In the standard's order. NaNs without payload are quiet.
enum class NumberClass {
  signalling_nan,
  quiet_nan,
  negative_infinity,
  negative_normal,
  negative_subnormal,
  negative_zero,
  positive_zero,
  positive_subnormal,
  positive_normal,
  positive_infinity
};

/// Neither zero nor subnormal nor infinite nor a NaN.
template <const Format& F>
FP16_HD constexpr bool is_normal(Code<F> bits) {
  return is_finite<F>(bits) && !is_zero<F>(bits) && !is_subnormal<F>(bits);
}

template <const Format& F>
FP16_HD constexpr NumberClass classify(Code<F> bits) {
  if (is_nan<F>(bits))
    return is_signalling_nan<F>(bits) ? NumberClass::signalling_nan : NumberClass::quiet_nan;
  const bool negative = is_negative<F>(bits);
  if (is_infinite<F>(bits)) return negative ? NumberClass::negative_infinity : NumberClass::positive_infinity;
  if (is_zero<F>(bits)) return negative ? NumberClass::negative_zero : NumberClass::positive_zero;
  if (is_subnormal<F>(bits))
    return negative ? NumberClass::negative_subnormal : NumberClass::positive_subnormal;
  return negative ? NumberClass::negative_normal : NumberClass::positive_normal;
}

}  // namespace fp16
