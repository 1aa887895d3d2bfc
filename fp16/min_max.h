#pragma once
/// The smaller and the larger of two numbers, in all kinds that the standards define. They differ in what a
/// NaN does; in all of them -0 is smaller than +0.
///
/// The result is one of the operands as `denormals_are_zero` reads it: nothing is rounded, saturated or
/// flushed. A result that is a NaN is the one that `attributes.nan_policy` chooses. A signalling NaN operand
/// is invalid always.

#include "comparison.h"
#include "config.h"
#include "sign.h"
#include "unpacked.h"

namespace fp16 {

namespace detail {

enum class NanOperand { propagates, is_missing, is_missing_if_quiet };

struct Extremum {
  NanOperand nan_operand;
  bool larger = false;
  bool by_magnitude = false;
};

template <const Format& F>
FP16_HD constexpr Result<F> extremum(Bits<F> a, Bits<F> b, const Attributes& attributes, Extremum kind) {
  a = read_operand<F>(a, attributes);
  b = read_operand<F>(b, attributes);
  if (is_nan<F>(a) || is_nan<F>(b)) {
    const Result<F> nan = propagate_nan<F>(attributes, a, b);
    const bool both = is_nan<F>(a) && is_nan<F>(b);
    const bool poisoned = kind.nan_operand == NanOperand::propagates ||
                          (kind.nan_operand == NanOperand::is_missing_if_quiet && nan.flags.invalid);
    if (both || poisoned) return nan;
    return {.bits = is_nan<F>(a) ? b : a, .flags = nan.flags};
  }
  const Bits<F> x = magnitude<F>(a), y = magnitude<F>(b);
  const bool a_is_smaller = kind.by_magnitude && x != y ? x < y : total_order<F>(a, b);
  return {.bits = a_is_smaller != kind.larger ? a : b, .flags = {}};
}

}  // namespace detail

/// IEEE 754-2019 clause 9.6: a NaN operand makes the result a NaN.
template <const Format& F>
FP16_HD constexpr Result<F> minimum(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes, {.nan_operand = detail::NanOperand::propagates});
}
template <const Format& F>
FP16_HD constexpr Result<F> maximum(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes,
                             {.nan_operand = detail::NanOperand::propagates, .larger = true});
}

/// IEEE 754-2019 clause 9.6: a NaN counts as missing data, a signalling one too; the result is a NaN only if
/// both operands are.
template <const Format& F>
FP16_HD constexpr Result<F> minimum_number(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes, {.nan_operand = detail::NanOperand::is_missing});
}
template <const Format& F>
FP16_HD constexpr Result<F> maximum_number(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes,
                             {.nan_operand = detail::NanOperand::is_missing, .larger = true});
}

/// IEEE 754-2008 clause 5.3.1: a quiet NaN counts as missing data, a signalling one makes the result a NaN.
/// Not associative, for which reason the standard of 2019 dropped them.
template <const Format& F>
FP16_HD constexpr Result<F> min_num(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes, {.nan_operand = detail::NanOperand::is_missing_if_quiet});
}
template <const Format& F>
FP16_HD constexpr Result<F> max_num(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes,
                             {.nan_operand = detail::NanOperand::is_missing_if_quiet, .larger = true});
}

/// The operand whose magnitude is smaller or larger; of equal magnitudes what the kind of the same name
/// without magnitude gives.
template <const Format& F>
FP16_HD constexpr Result<F> minimum_magnitude(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes,
                             {.nan_operand = detail::NanOperand::propagates, .by_magnitude = true});
}
template <const Format& F>
FP16_HD constexpr Result<F> maximum_magnitude(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(
      a, b, attributes,
      {.nan_operand = detail::NanOperand::propagates, .larger = true, .by_magnitude = true});
}
template <const Format& F>
FP16_HD constexpr Result<F> minimum_magnitude_number(Code<F> a, Code<F> b,
                                                     const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes,
                             {.nan_operand = detail::NanOperand::is_missing, .by_magnitude = true});
}
template <const Format& F>
FP16_HD constexpr Result<F> maximum_magnitude_number(Code<F> a, Code<F> b,
                                                     const Attributes& attributes = {}) {
  return detail::extremum<F>(
      a, b, attributes,
      {.nan_operand = detail::NanOperand::is_missing, .larger = true, .by_magnitude = true});
}
template <const Format& F>
FP16_HD constexpr Result<F> min_num_mag(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(a, b, attributes,
                             {.nan_operand = detail::NanOperand::is_missing_if_quiet, .by_magnitude = true});
}
template <const Format& F>
FP16_HD constexpr Result<F> max_num_mag(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  return detail::extremum<F>(
      a, b, attributes,
      {.nan_operand = detail::NanOperand::is_missing_if_quiet, .larger = true, .by_magnitude = true});
}

}  // namespace fp16
