#pragma once
/// What x86's vector arithmetic gives: the software half, whose defaults are those of x86, and what the Intel 64 and IA-32
/// Architectures Software Developer's Manual says of subnormal operands, minima and maxima. For any format, so that
/// instructions on floats, which more processors have, can be held to the same rules.

#include <cstdint>
#include <type_traits>

#include "experiments/cpu/instructions/software_half.h"
#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/comparison.h"
#include "fp16/formats.h"
#include "fp16/integral.h"

namespace experiments::validate_cpu::x86 {

/// Volume 1, 4.9.2: a subnormal operand is noted unless a NaN operand, another invalid operation or a division by zero
/// goes before it. `outcome` has the value alone, and gets the exceptions.
template <const fp16::Format& F, class... Codes>
Outcome noting_subnormal_operands(Outcome outcome, fp16::Flags flags, Codes... operands) {
  const bool has_nan = (fp16::is_nan<F>(operands) || ...);
  outcome.is_by_rule =
      (fp16::is_subnormal<F>(operands) || ...) && !has_nan && !flags.invalid && !flags.divide_by_zero;
  outcome.exceptions = exceptions_of(flags);
  if (outcome.is_by_rule) outcome.exceptions |= subnormal_operand;
  return outcome;
}

template <const fp16::Format& F, class... Codes>
Outcome with_subnormal_operands(const fp16::Result<F>& result, Codes... operands) {
  return noting_subnormal_operands<F>({.value = result.bits}, result.flags, operands...);
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

/// CMPPS and its kin (volume 2, table "Comparison Predicate for CMPPD and CMPPS Instructions"): the lower four bits of the
/// immediate choose the relations, the highest turns whether quiet NaNs are invalid.
template <const fp16::Format& F, int immediate>
Outcome compared(const Operands& operands, const Mode&) {
  constexpr auto less = static_cast<unsigned>(fp16::Relation::less),
                 equal = static_cast<unsigned>(fp16::Relation::equal),
                 greater = static_cast<unsigned>(fp16::Relation::greater),
                 unordered = static_cast<unsigned>(fp16::Relation::unordered);
  constexpr unsigned relations[] = {equal,
                                    less,
                                    less | equal,
                                    unordered,
                                    less | greater | unordered,
                                    equal | greater | unordered,
                                    greater | unordered,
                                    less | equal | greater,
                                    equal | unordered,
                                    less | unordered,
                                    less | equal | unordered,
                                    0,
                                    less | greater,
                                    equal | greater,
                                    greater,
                                    less | equal | greater | unordered};
  constexpr auto predicate = static_cast<fp16::Predicate>(relations[immediate & 15]);
  constexpr bool of_order = (immediate & 3) == 1 || (immediate & 3) == 2, is_turned = (immediate & 16) != 0;
  const auto a = code_of<F>(operands.a), b = code_of<F>(operands.b);
  const fp16::Comparison comparison = of_order != is_turned ? fp16::compare_signalling<F>(a, predicate, b)
                                                            : fp16::compare_quiet<F>(a, predicate, b);
  return noting_subnormal_operands<F>({.value = comparison.holds}, comparison.flags, a, b);
}

template <const fp16::Format& F>
using Compare = fp16::Comparison (*)(fp16::Code<F>, fp16::Predicate, fp16::Code<F>, const fp16::Attributes&);

/// COMISS, UCOMISS (volume 2): zero, parity and carry are 111 for unordered, 000 for greater, 001 for less, 100 for equal.
template <const fp16::Format& F, Compare<F> compare>
Outcome flags_of_comparison(const Operands& operands, const Mode&) {
  const auto a = code_of<F>(operands.a), b = code_of<F>(operands.b);
  const auto holds = [&](fp16::Predicate predicate) { return compare(a, predicate, b, {}).holds; };
  const unsigned flags = holds(fp16::Predicate::unordered) ? 7U
                         : holds(fp16::Predicate::less)    ? 1U
                         : holds(fp16::Predicate::equal)   ? 4U
                                                           : 0U;
  return noting_subnormal_operands<F>({.value = flags}, compare(a, fp16::Predicate::equal, b, {}).flags, a,
                                      b);
}

/// VCVTPH2PSX, VCVTPH2PD (volume 2): DAZ is not for halves, and no result is subnormal.
template <const fp16::Format& Wide, const fp16::Format& Narrow = fp16::binary16>
Outcome widened(const Operands& operands, const Mode&) {
  const auto a = code_of<Narrow>(operands.a);
  const auto result = fp16::convert<Wide, Narrow>(a);
  return noting_subnormal_operands<Narrow>({.value = result.bits}, result.flags, a);
}

/// VCVTPS2PH, VCVTPS2PHX, VCVTPD2PH (volume 2): DAZ is for the wide operand, FTZ plays no part in the half.
template <const fp16::Format& Wide, const fp16::Format& Narrow = fp16::binary16>
Outcome narrowed(const Operands& operands, const Mode& mode) {
  const auto a = code_of<Wide>(operands.a);
  const auto result = fp16::convert<Narrow, Wide>(
      a, {.rounding = mode.rounding, .denormals_are_zero = mode.reads_wide_as_zero});
  if (mode.reads_wide_as_zero) return outcome_of<Narrow>(result, result);
  return noting_subnormal_operands<Wide>({.value = result.bits}, result.flags, a);
}

/// VRNDSCALE (volume 2): the nearest multiple of 2^-M, M in the immediate's highest four bits, by the rounding of its lowest
/// two unless bit 2 leaves that to MXCSR; bit 3 keeps inexact results to itself. Subnormal operands are not noted.
template <const fp16::Format& F, int immediate>
Outcome rounded_to_multiple(const Operands& operands, const Mode& mode) {
  using fp16::binary64;
  constexpr fp16::Rounding roundings[] = {fp16::Rounding::nearest_even, fp16::Rounding::toward_negative,
                                          fp16::Rounding::toward_positive, fp16::Rounding::toward_zero};
  constexpr std::uint64_t one = 0x3FF0000000000000, steps = std::uint64_t{immediate >> 4} << 52;
  const fp16::Rounding rounding = (immediate & 4) != 0 ? mode.rounding : roundings[immediate & 3];
  // Doubles have room for the multiple of any half or float.
  const auto wide = fp16::convert<binary64, F>(code_of<F>(operands.a));
  const auto scaled = fp16::multiply<binary64>(wide.bits, one + steps);
  const auto integral = fp16::round_to_integral_exact<binary64>(scaled.bits, {.rounding = rounding});
  const auto result = fp16::convert<F, binary64>(fp16::multiply<binary64>(integral.bits, one - steps).bits);
  fp16::Flags flags = wide.flags | integral.flags;
  flags.inexact &= (immediate & 8) == 0;
  return {.value = result.bits, .exceptions = exceptions_of(flags)};
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
