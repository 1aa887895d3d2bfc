#pragma once
/// What AArch64's half instructions give: the software half, and what the Arm Architecture Reference Manual for
/// A-profile (DDI 0487, the shared pseudocode named at each rule) says otherwise.

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "experiments/cpu/instructions/instruction.h"
#include "experiments/cpu/instructions/software_half.h"
#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/comparison.h"
#include "fp16/formats.h"
#include "fp16/integral.h"
#include "fp16/min_max.h"

namespace experiments::validate_cpu::aarch64 {

using fp16::bfloat16;
using fp16::binary16;
using fp16::binary32;
using fp16::Bits;
using fp16::Code;
using fp16::Flags;
using fp16::Format;
using fp16::Result;
using fp16::Rounding;

/// Tininess is seen before rounding (FPRoundBase), the default NaN is positive and without payload (FPDefaultNaN).
inline fp16::Attributes attributes_of(const Mode& mode, bool has_nan_operand = false) {
  const bool propagates = has_nan_operand && !mode.default_nan;
  return {.rounding = mode.rounding,
          .flush_to_zero = mode.flushes_halves,
          .denormals_are_zero = mode.flushes_halves,
          .tininess = fp16::Tininess::before_rounding,
          .nan_policy = propagates ? fp16::NanPolicy::first_operand : fp16::NanPolicy::canonical_riscv};
}

/// FPProcessNaNs, FPProcessNaNs3: the first signalling NaN, else the first quiet one, quieted. One operand is a NaN.
template <const Format& F>
Bits<F> processed_nan(std::initializer_list<Bits<F>> operands) {
  for (const Bits<F> each : operands) {
    if (fp16::is_signalling_nan<F>(each)) return static_cast<Bits<F>>(each | fp16::quiet_bit<F>);
  }
  for (const Bits<F> each : operands) {
    if (fp16::is_nan<F>(each)) return each;
  }
  return 0;
}

template <const Format& F>
bool any_nan(std::initializer_list<Bits<F>> operands) {
  for (const Bits<F> each : operands) {
    if (fp16::is_nan<F>(each)) return true;
  }
  return false;
}

/// FPRoundBase: a result that FPCR.FZ16 flushes sets FPSR.UFC, and not FPSR.IXC.
template <const Format& F>
Result<F> flushed_as_documented(Result<F> result, const Mode& mode) {
  if (mode.flushes_halves && result.flags.underflow) result.flags.inexact = false;
  return result;
}

template <Unary<binary16> operation>
Outcome unary(const Operands& operands, const Mode& mode) {
  const auto a = code_of<binary16>(operands.a);
  const auto software = operation(a, attributes_of(mode, fp16::is_nan<binary16>(a)));
  return outcome_of(flushed_as_documented(software, mode), software);
}

/// After the software's operation: which NaN, and what a flush raises.
inline Result<binary16> as_documented(Result<binary16> result, std::initializer_list<std::uint16_t> operands,
                                      const Mode& mode) {
  result = flushed_as_documented(result, mode);
  if (!mode.default_nan && fp16::is_nan<binary16>(result.bits) && any_nan<binary16>(operands))
    result.bits = processed_nan<binary16>(operands);
  return result;
}

enum class After : std::uint8_t { nothing, negate, absolute };

/// FPNeg and FPAbs, which take NaNs as they are, after the operation (FNMUL, FABD).
template <Binary<binary16> operation, After after = After::nothing>
Outcome binary(const Operands& operands, const Mode& mode) {
  const auto a = code_of<binary16>(operands.a), b = code_of<binary16>(operands.b);
  const auto software = operation(a, b, attributes_of(mode, any_nan<binary16>({a, b})));
  const Result<binary16> result = as_documented(software, {a, b}, mode);
  Outcome outcome = outcome_of(result, software);
  if constexpr (after == After::negate) outcome.value = fp16::negate<binary16>(result.bits);
  if constexpr (after == After::absolute) outcome.value = fp16::abs<binary16>(result.bits);
  return outcome;
}

/// FPMulX: an infinity times a zero is 2, of the sign of the product, without an exception.
inline Result<binary16> multiply_extended(Code<binary16> a, Code<binary16> b,
                                          const fp16::Attributes& attributes) {
  const Bits<binary16> x = fp16::read_operand<binary16>(a, attributes);
  const Bits<binary16> y = fp16::read_operand<binary16>(b, attributes);
  const bool is_two = (fp16::is_infinite<binary16>(x) && fp16::is_zero<binary16>(y)) ||
                      (fp16::is_zero<binary16>(x) && fp16::is_infinite<binary16>(y));
  if (!is_two) return fp16::multiply<binary16>(a, b, attributes);
  constexpr std::uint16_t two = 0x4000;
  return {.bits = fp16::with_sign<binary16>(two,
                                            fp16::is_negative<binary16>(x) != fp16::is_negative<binary16>(y)),
          .flags = {}};
}

/// FPMulAdd: the addend's NaN before those of the factors; a quiet NaN added to an infinity times a zero is invalid
/// and gives the default NaN.
template <const Format& F>
Outcome multiplied_and_added(Bits<F> addend, Bits<F> a, Bits<F> b, const Mode& mode,
                             const fp16::Attributes& attributes) {
  const Result<F> software = fp16::fma<F>(a, b, addend, attributes);
  Result<F> result = software;
  if (any_nan<F>({addend, a, b})) {
    const Bits<F> x = fp16::read_operand<F>(a, attributes), y = fp16::read_operand<F>(b, attributes);
    const bool is_invalid_product =
        (fp16::is_infinite<F>(x) && fp16::is_zero<F>(y)) || (fp16::is_zero<F>(x) && fp16::is_infinite<F>(y));
    if (!mode.default_nan) result.bits = processed_nan<F>({addend, a, b});
    if (is_invalid_product && !fp16::is_signalling_nan<F>(addend))
      result = {.bits = fp16::quiet_nan_bits<F>, .flags = {.invalid = true}};
  }
  return outcome_of(result, software);
}

enum class Negated : std::uint8_t { none, product, addend, both };

/// FPNeg of an operand turns the sign of a NaN too (FMSUB, FNMADD, FNMSUB, FMLS).
template <Negated negated>
Outcome fused(const Operands& operands, const Mode& mode) {
  constexpr bool of_product = negated == Negated::product || negated == Negated::both;
  constexpr bool of_addend = negated == Negated::addend || negated == Negated::both;
  auto a = code_of<binary16>(operands.a), c = code_of<binary16>(operands.c);
  const auto b = code_of<binary16>(operands.b);
  if constexpr (of_product) a = fp16::negate<binary16>(a);
  if constexpr (of_addend) c = fp16::negate<binary16>(c);
  Outcome outcome =
      multiplied_and_added<binary16>(c, a, b, mode, attributes_of(mode, any_nan<binary16>({a, b, c})));
  if (mode.flushes_halves && (outcome.exceptions & underflow) != 0) {
    outcome.exceptions &= static_cast<Exceptions>(~inexact);
    outcome.is_by_rule = true;
  }
  return outcome;
}

/// The code in binary32, a signalling NaN still signalling.
inline std::uint32_t widened(std::uint16_t half) {
  if (!fp16::is_nan<binary16>(half)) return fp16::convert<binary32, binary16>(half).bits;
  return static_cast<std::uint32_t>(half & 0x8000) << 16 | 0x7F800000U |
         static_cast<std::uint32_t>(half & 0x3FF) << 13;
}

/// FPMulAddH: exact products of halves are added to a single, rounded once; FPCR.FZ16 is for the halves.
template <bool negates>
Outcome widening_fused(const Operands& operands, const Mode& mode) {
  fp16::Attributes attributes = attributes_of(mode);
  auto a = fp16::read_operand<binary16>(code_of<binary16>(operands.a), attributes);
  const auto b = fp16::read_operand<binary16>(code_of<binary16>(operands.b), attributes);
  if constexpr (negates) a = fp16::negate<binary16>(a);
  attributes.flush_to_zero = attributes.denormals_are_zero = false;
  return multiplied_and_added<binary32>(code_of<binary32>(operands.c), widened(a), widened(b), mode,
                                        attributes);
}

/// BFMLALB, BFMLALT: FPMulAdd of the bfloat16 factors as singles.
inline Outcome bfloat_fused(const Operands& operands, const Mode& mode) {
  return multiplied_and_added<binary32>(
      code_of<binary32>(operands.c), static_cast<std::uint32_t>(operands.a) << 16,
      static_cast<std::uint32_t>(operands.b) << 16, mode, attributes_of(mode));
}

/// BFRound: to odd, subnormal results flushed, an overflow is an infinity. FPCR and FPSR play no part.
inline std::uint32_t rounded_for_dot(const Result<binary32>& result) {
  if (!result.flags.overflow) return result.bits;
  return fp16::with_sign<binary32>(fp16::infinity_bits<binary32>, fp16::is_negative<binary32>(result.bits));
}

/// BFDotAdd without FEAT_EBF16 or with FPCR.EBF at 0: two products, their sum, the sum with the addend, each rounded.
inline std::uint32_t dot_of_2(std::uint32_t addend, std::uint32_t a, std::uint32_t b) {
  constexpr fp16::Attributes attributes{.rounding = Rounding::to_odd,
                                        .flush_to_zero = true,
                                        .denormals_are_zero = true,
                                        .tininess = fp16::Tininess::before_rounding,
                                        .nan_policy = fp16::NanPolicy::canonical_riscv};
  const auto product = [&](std::uint32_t x, std::uint32_t y) {
    return rounded_for_dot(fp16::multiply<binary32>(x, y, attributes));
  };
  const auto sum = [&](std::uint32_t x, std::uint32_t y) {
    return rounded_for_dot(fp16::add<binary32>(x, y, attributes));
  };
  return sum(addend, sum(product(a << 16, b << 16), product(a & 0xFFFF0000, b & 0xFFFF0000)));
}

/// BFDOT, and BFMMLA with two steps for each element (BFMatMulAdd).
template <int steps>
Outcome bfloat_dot(const Operands& operands, const Mode&) {
  auto sum = code_of<binary32>(operands.c);
  for (int step = 0; step < steps; ++step)
    sum = dot_of_2(sum, static_cast<std::uint32_t>(operands.a >> 32 * step),
                   static_cast<std::uint32_t>(operands.b >> 32 * step));
  return {.value = sum};
}

/// FPConvert, FPConvertBF: FPCR.FZ is for wide operands, FPCR.FZ16 for none (FPUnpackCV, FPRoundCV).
template <const Format& To, const Format& From>
Outcome converted(const Operands& operands, const Mode& mode) {
  auto from = code_of<From>(operands.a);
  Exceptions read = 0;
  if (mode.reads_wide_as_zero && From.width() > 16 && fp16::is_subnormal<From>(from)) {
    from &= fp16::sign_mask<From>;
    read = subnormal_operand;
  }
  fp16::Attributes attributes = attributes_of(mode, fp16::is_nan<From>(from));
  attributes.flush_to_zero = attributes.denormals_are_zero = false;
  const auto software = fp16::convert<To, From>(from, attributes);
  return {.value = software.bits,
          .exceptions = static_cast<Exceptions>(exceptions_of(software.flags) | read),
          .is_by_rule = read != 0};
}

/// FPConvert and FPRoundBase with FPCR.AHP: what alternative half precision does not have is invalid, and nothing
/// else: a NaN becomes a zero of its sign, an infinity or an overflow the largest number.
template <const Format& From>
Outcome converted_to_alternative(const Operands& operands, const Mode& mode) {
  using validation::alternative_half;
  const auto from = code_of<From>(operands.a);
  fp16::Attributes attributes = attributes_of(mode);
  const auto software = fp16::convert<alternative_half, From>(from, attributes);
  Result<alternative_half> result = software;
  const auto sign = static_cast<std::uint16_t>(fp16::is_negative<From>(from) ? 0x8000 : 0);
  if (fp16::is_nan<From>(from)) result = {.bits = sign, .flags = {.invalid = true}};
  if (fp16::is_infinite<From>(from) || software.flags.overflow)
    result = {.bits = static_cast<std::uint16_t>(sign | 0x7FFF), .flags = {.invalid = true}};
  return outcome_of(result, software);
}

template <const Format& To>
Outcome converted_from_alternative(const Operands& operands, const Mode&) {
  const auto software =
      fp16::convert<To, validation::alternative_half>(static_cast<std::uint16_t>(operands.a));
  return outcome_of(software, software);
}

/// FPToFixed: saturating, 0 for a NaN.
template <typename Integer, Rounding rounding>
Outcome to_integer(const Operands& operands, const Mode& mode) {
  fp16::Attributes attributes = attributes_of(mode);
  attributes.rounding = rounding;
  attributes.saturate = true;
  const auto result = fp16::to_integer_exact<Integer, binary16>(code_of<binary16>(operands.a), attributes);
  return {.value = static_cast<std::make_unsigned_t<Integer>>(result.value),
          .exceptions = exceptions_of(result.flags)};
}

/// FixedToFP.
template <typename Integer>
Outcome from_integer(const Operands& operands, const Mode& mode) {
  const auto result = fp16::from_integer<binary16>(static_cast<Integer>(operands.a), attributes_of(mode));
  return outcome_of(result, result);
}

/// FPRoundInt: FRINTX alone is inexact; FRINTI and FRINTX round as FPCR says.
template <Rounding rounding>
Result<binary16> integral(Code<binary16> a, const fp16::Attributes& attributes) {
  fp16::Attributes directed = attributes;
  directed.rounding = rounding;
  return fp16::round_to_integral<binary16>(a, directed);
}

/// FPCompare: N, Z, C and V.
template <bool signalling>
Outcome compared(const Operands& operands, const Mode& mode) {
  const auto a = code_of<binary16>(operands.a), b = code_of<binary16>(operands.b);
  const fp16::Attributes attributes = attributes_of(mode);
  constexpr auto predicate = fp16::Predicate::ordered;
  const auto comparison = signalling ? fp16::compare_signalling<binary16>(a, predicate, b, attributes)
                                     : fp16::compare_quiet<binary16>(a, predicate, b, attributes);
  std::uint64_t flags = 0b0011;
  switch (fp16::relation<binary16>(a, b, attributes)) {
    case fp16::Relation::less:
      flags = 0b1000;
      break;
    case fp16::Relation::equal:
      flags = 0b0110;
      break;
    case fp16::Relation::greater:
      flags = 0b0010;
      break;
    case fp16::Relation::unordered:
      break;
  }
  return {.value = flags, .exceptions = exceptions_of(comparison.flags)};
}

/// FPCompareEQ is quiet, FPCompareGE and FPCompareGT are signalling. All ones for true.
template <fp16::Predicate predicate, bool of_magnitudes = false>
Outcome compared_to_mask(const Operands& operands, const Mode& mode) {
  auto a = code_of<binary16>(operands.a), b = code_of<binary16>(operands.b);
  if constexpr (of_magnitudes) {
    a = fp16::abs<binary16>(a);
    b = fp16::abs<binary16>(b);
  }
  const auto comparison = predicate == fp16::Predicate::equal
                              ? fp16::compare_quiet<binary16>(a, predicate, b, attributes_of(mode))
                              : fp16::compare_signalling<binary16>(a, predicate, b, attributes_of(mode));
  return {.value = comparison.holds ? 0xFFFFU : 0U, .exceptions = exceptions_of(comparison.flags)};
}

}  // namespace experiments::validate_cpu::aarch64
