#pragma once
/// What RISC-V's Zfh gives: the software half, and what the RISC-V Instruction Set Manual, Volume I (unprivileged, the
/// section named at each rule) says otherwise.

#include <cstdint>
#include <limits>
#include <type_traits>

#include "experiments/cpu/instructions/instruction.h"
#include "experiments/cpu/instructions/software_half.h"
#include "fp16/arithmetic.h"
#include "fp16/classification.h"
#include "fp16/codec.h"
#include "fp16/comparison.h"
#include "fp16/formats.h"
#include "fp16/integral.h"
#include "fp16/min_max.h"

namespace experiments::validate_cpu::riscv64 {

using fp16::binary16;
using fp16::Bits;
using fp16::Format;
using fp16::Result;

/// A NaN result is the canonical one (F, NaN Generation and Propagation), tininess is seen after rounding (F, Subnormal
/// Arithmetic).
inline fp16::Attributes attributes_of(const Mode& mode) {
  return {.rounding = mode.rounding,
          .tininess = fp16::Tininess::after_rounding,
          .nan_policy = fp16::NanPolicy::canonical_riscv};
}

/// A register of 64 bits that holds a half: all bits above it are ones (D, NaN Boxing of Narrower Values).
constexpr std::uint64_t boxed(std::uint16_t half) {
  return ~std::uint64_t{0xFFFF} | half;
}

/// A register that holds no boxed half, for each half: it lacks one of the ones, or all of them.
constexpr std::uint64_t unboxed(std::uint16_t half) {
  return half % 3 == 0 ? half : boxed(half) & ~(std::uint64_t{1} << (16 + half % 48));
}

/// What instructions take such a register for.
inline constexpr std::uint16_t canonical_nan = fp16::quiet_nan_bits<binary16>;

template <Unary<binary16> operation>
Outcome unary(const Operands& operands, const Mode& mode) {
  const auto result = operation(code_of<binary16>(operands.a), attributes_of(mode));
  return outcome_of(result, result);
}

template <Binary<binary16> operation>
Outcome binary(const Operands& operands, const Mode& mode) {
  const auto result =
      operation(code_of<binary16>(operands.a), code_of<binary16>(operands.b), attributes_of(mode));
  return outcome_of(result, result);
}

enum class Negated : std::uint8_t { none, product, addend, both };

/// An infinity times a zero is invalid even where a quiet NaN is added (F, Single-Precision Floating-Point Computational
/// Instructions).
template <Negated negated>
Outcome fused(const Operands& operands, const Mode& mode) {
  auto a = code_of<binary16>(operands.a), c = code_of<binary16>(operands.c);
  const auto b = code_of<binary16>(operands.b);
  if constexpr (negated == Negated::product || negated == Negated::both) a = fp16::negate<binary16>(a);
  if constexpr (negated == Negated::addend || negated == Negated::both) c = fp16::negate<binary16>(c);
  const auto software = fp16::fma<binary16>(a, b, c, attributes_of(mode));
  Result<binary16> result = software;
  result.flags.invalid |= (fp16::is_infinite<binary16>(a) && fp16::is_zero<binary16>(b)) ||
                          (fp16::is_zero<binary16>(a) && fp16::is_infinite<binary16>(b));
  return outcome_of(result, software);
}

/// FSGNJ, FSGNJN, FSGNJX: the sign of b, its opposite, that of the product; of NaNs too, which stay as they are.
enum class Sign : std::uint8_t { same, opposite, product };
template <Sign sign>
Outcome sign_injected(const Operands& operands, const Mode&) {
  const auto a = code_of<binary16>(operands.a), b = code_of<binary16>(operands.b);
  const bool negative = fp16::is_negative<binary16>(b);
  const bool chosen = sign == Sign::same       ? negative
                      : sign == Sign::opposite ? !negative
                                               : negative != fp16::is_negative<binary16>(a);
  return {.value = fp16::with_sign<binary16>(fp16::magnitude<binary16>(a), chosen)};
}

template <const Format& To, const Format& From>
Outcome converted(const Operands& operands, const Mode& mode) {
  const auto result = fp16::convert<To, From>(code_of<From>(operands.a), attributes_of(mode));
  return outcome_of(result, result);
}

/// A NaN becomes the largest integer (F, Single-Precision Floating-Point Conversion and Move Instructions), and an integer
/// of 32 bits, unsigned too, extends its sign.
template <typename Integer>
Outcome to_integer(const Operands& operands, const Mode& mode) {
  const auto a = code_of<binary16>(operands.a);
  fp16::Attributes attributes = attributes_of(mode);
  attributes.saturate = true;
  const auto software = fp16::to_integer_exact<Integer, binary16>(a, attributes);
  const bool is_nan = fp16::is_nan<binary16>(a);
  const auto value =
      static_cast<std::make_signed_t<Integer>>(is_nan ? std::numeric_limits<Integer>::max() : software.value);
  return {.value = static_cast<std::uint64_t>(std::int64_t{value}),
          .exceptions = exceptions_of(software.flags),
          .is_by_rule = is_nan || (std::is_unsigned_v<Integer> && value < 0 && sizeof value < 8)};
}

template <typename Integer>
Outcome from_integer(const Operands& operands, const Mode& mode) {
  const auto result = fp16::from_integer<binary16>(static_cast<Integer>(operands.a), attributes_of(mode));
  return outcome_of(result, result);
}

/// FEQ is quiet, FLT and FLE are signalling.
template <fp16::Predicate predicate>
Outcome compared(const Operands& operands, const Mode& mode) {
  const auto a = code_of<binary16>(operands.a), b = code_of<binary16>(operands.b);
  const auto comparison = predicate == fp16::Predicate::equal
                              ? fp16::compare_quiet<binary16>(a, predicate, b, attributes_of(mode))
                              : fp16::compare_signalling<binary16>(a, predicate, b, attributes_of(mode));
  return {.value = comparison.holds, .exceptions = exceptions_of(comparison.flags)};
}

/// FCLASS: one bit of ten, from the negative infinity to the quiet NaN.
inline Outcome classified(const Operands& operands, const Mode&) {
  using Class = fp16::NumberClass;
  constexpr Class in_order[] = {Class::negative_infinity, Class::negative_normal,   Class::negative_subnormal,
                                Class::negative_zero,     Class::positive_zero,     Class::positive_subnormal,
                                Class::positive_normal,   Class::positive_infinity, Class::signalling_nan,
                                Class::quiet_nan};
  const Class found = fp16::classify<binary16>(code_of<binary16>(operands.a));
  std::uint64_t bit = 1;
  for (const Class each : in_order) {
    if (each == found) break;
    bit <<= 1;
  }
  return {.value = bit};
}

/// FMV.X.H: the half's bits as they are, its sign extended.
inline Outcome moved_to_integer(const Operands& operands, const Mode&) {
  return {.value = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(operands.a)})};
}

/// FMV.H.X, FLH and FSH: the bits as they are.
inline Outcome moved(const Operands& operands, const Mode&) {
  return {.value = operands.a};
}

/// The register of an instruction that gives a half.
template <Model model>
Outcome boxed_result(const Operands& operands, const Mode& mode) {
  Outcome outcome = model(operands, mode);
  outcome.value = boxed(static_cast<std::uint16_t>(outcome.value));
  return outcome;
}

/// With the operand, 0 for a, in a register that boxes no half.
template <Model model, int place>
Outcome with_unboxed(const Operands& operands, const Mode& mode) {
  Operands taken = operands;
  (place == 0 ? taken.a : place == 1 ? taken.b : taken.c) = canonical_nan;
  Outcome outcome = model(taken, mode);
  outcome.is_by_rule = true;
  return outcome;
}

}  // namespace experiments::validate_cpu::riscv64
