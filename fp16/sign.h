#pragma once
/// Operations on the sign bit alone (IEEE 754-2019 clause 5.5.1; negate: bits.h). They take NaNs like numbers
/// and raise nothing.

#include "bits.h"
#include "config.h"

namespace fp16 {

/// |a|; the NaN of a fnuz format, whose code is the sign bit, stays as it is.
template <const Format& F>
FP16_HD constexpr Bits<F> abs(Code<F> a) {
  if (F.encoding == Encoding::fnuz && is_nan<F>(a)) return a;
  return magnitude<F>(a);
}

/// `a` with the sign bit of `sign`, where the format has that number: +0 stays +0 in a fnuz format, and
/// everything positive in a format without a sign.
template <const Format& F>
FP16_HD constexpr Bits<F> copy_sign(Code<F> a, Code<F> sign) {
  return with_sign<F>(abs<F>(a), is_negative<F>(sign));
}

}  // namespace fp16
