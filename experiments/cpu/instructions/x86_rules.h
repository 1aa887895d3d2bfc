#pragma once
/// What x86's vector arithmetic gives: the software half, whose defaults are those of x86, and what the Intel 64 and IA-32
/// Architectures Software Developer's Manual says of subnormal operands, minima and maxima. For any format, so that
/// instructions on floats, which more processors have, can be held to the same rules.

#include <cstdint>
#include <type_traits>

#include "experiments/cpu/instructions/software_half.h"
#include "fp16/arithmetic.h"
#include "fp16/comparison.h"
#include "fp16/integral.h"

namespace experiments::validate_cpu::x86 {

/// Volume 1, 4.9.2: a subnormal operand is noted unless a NaN operand, another invalid operation or a division by zero
/// goes before it.
template <const fp16::Format& F, class... Codes>
Outcome with_subnormal_operands(const fp16::Result<F>& result, Codes... operands) {
  const bool has_nan = (fp16::is_nan<F>(operands) || ...);
  const bool is_noted = (fp16::is_subnormal<F>(operands) || ...) && !has_nan && !result.flags.invalid &&
                        !result.flags.divide_by_zero;
  Outcome outcome = outcome_of<F>(result, result);
  if (is_noted) outcome.exceptions |= subnormal_operand;
  outcome.is_by_rule = is_noted;
  return outcome;
}

template <const fp16::Format& F, Unary<F> operation>
Outcome unary(const Operands& operands, const Mode& mode) {
  const auto a = code_of<F>(operands.a);
  return with_subnormal_operands<F>(operation(a, {.rounding = mode.rounding}), a);
}

template <const fp16::Format& F, Binary<F> operation>
Outcome binary(const Operands& operands, const Mode& mode) {
  const auto a = code_of<F>(operands.a), b = code_of<F>(operands.b);
  return with_subnormal_operands<F>(operation(a, b, {.rounding = mode.rounding}), a, b);
}

/// VFMADD231 and its kin: the operands' signs turn but for those of NaNs, of which the addend's, that of the destination,
/// comes last.
template <const fp16::Format& F, bool negates_product, bool negates_addend>
Outcome fused(const Operands& operands, const Mode& mode) {
  const auto signed_as = [](fp16::Bits<F> code, bool negates) {
    return negates && !fp16::is_nan<F>(code) ? fp16::negate<F>(code) : code;
  };
  const auto a = signed_as(code_of<F>(operands.a), negates_product), b = code_of<F>(operands.b);
  const auto c = signed_as(code_of<F>(operands.c), negates_addend);
  return with_subnormal_operands<F>(fp16::fma<F>(a, b, c, {.rounding = mode.rounding}), a, b, c);
}

/// MINPS, MAXPS (volume 2): the second operand where one is a NaN, which is invalid, or where both are zeros or equal.
template <const fp16::Format& F, fp16::Predicate first_wins>
Outcome extremum(const Operands& operands, const Mode&) {
  const auto a = code_of<F>(operands.a), b = code_of<F>(operands.b);
  const auto comparison = fp16::compare_signalling<F>(a, first_wins, b);
  const fp16::Result<F> result{.bits = comparison.holds ? a : b, .flags = comparison.flags};
  Outcome outcome = with_subnormal_operands<F>(result, a, b);
  outcome.is_by_rule = true;
  return outcome;
}

/// The integer indefinite where there is none; subnormal operands are not noted.
template <const fp16::Format& F, typename Integer>
Outcome to_integer(const Operands& operands, const Mode& mode) {
  const auto result = fp16::to_integer_exact<Integer, F>(code_of<F>(operands.a), {.rounding = mode.rounding});
  return {.value = static_cast<std::make_unsigned_t<Integer>>(result.value),
          .exceptions = exceptions_of(result.flags)};
}

template <const fp16::Format& F, typename Integer>
Outcome truncated(const Operands& operands, const Mode& mode) {
  Mode truncating = mode;
  truncating.rounding = fp16::Rounding::toward_zero;
  return to_integer<F, Integer>(operands, truncating);
}

template <const fp16::Format& F, typename Integer>
Outcome from_integer(const Operands& operands, const Mode& mode) {
  const auto result = fp16::from_integer<F>(static_cast<Integer>(operands.a), {.rounding = mode.rounding});
  return outcome_of<F>(result, result);
}

}  // namespace experiments::validate_cpu::x86
