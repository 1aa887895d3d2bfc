#pragma once
/// Numbers taken apart into sign, exponent and significand; put together again with one rounding. What an
/// operation returns where there is no number to round: NaNs and infinities.

#include <cstdint>
#include <type_traits>

#include "bits.h"
#include "config.h"
#include "rounding.h"

namespace fp16 {

/// A code and the exceptions that making it raised.
template <const Format& F>
struct Result {
  Bits<F> bits;
  Flags flags;

  friend constexpr bool operator==(const Result&, const Result&) = default;
};

/// The finite number (-1)^negative * significand * 2^exponent; the significand is any integer and keeps its
/// zeros. After an inexact step its lowest bit is sticky: an odd significand s stands for some value between
/// s-1 and s+1.
template <typename UInt>
struct Unpacked {
  bool negative;
  int exponent;
  UInt significand;
};

/// An integer of at least 2p + 4 bits: the radicand of a square root, or a product of two significands with
/// two bits to spare at each end.
template <const Format& F>
requires(F.has_arithmetic()) using WideSignificand =
    std::conditional_t<2 * F.precision + 4 <= 64, std::uint64_t, uint128>;

template <typename UInt>
FP16_HD constexpr int bit_width(UInt value) {
  if constexpr (sizeof(UInt) <= 8) {
    // Not std::bit_width, which nvcc 13 turns into a constant in device code.
    return value == 0 ? 0 : 64 - __builtin_clzll(value);
  } else {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    const auto low = static_cast<std::uint64_t>(value);
    return high != 0 ? 64 + bit_width(high) : bit_width(low);
  }
}

/// `bits` must be finite.
template <const Format& F, typename UInt = WideSignificand<F>>
FP16_HD constexpr Unpacked<UInt> unpack(Code<F> bits) {
  const int biased_exponent = static_cast<int>(magnitude<F>(bits) >> F.trailing_bits());
  const UInt trailing = bits & trailing_mask<F>;
  const bool normal = biased_exponent != 0 || !F.has_zero();
  return {.negative = is_negative<F>(bits),
          .exponent = F.emin_subnormal() + biased_exponent - (normal && F.has_zero()),
          .significand = normal ? trailing + trailing_mask<F> + 1 : trailing};
}

/// The operand as an operation reads it: with `denormals_are_zero`, a subnormal number as zero.
template <const Format& F>
FP16_HD constexpr Bits<F> read_operand(Code<F> bits, const Attributes& attributes) {
  if (attributes.denormals_are_zero && is_subnormal<F>(bits)) return with_sign<F>(0, is_negative<F>(bits));
  return bits;
}

/// The NaN that `policy` gives where no operand is one; +0 in a format without NaN.
template <const Format& F>
FP16_HD constexpr Bits<F> default_nan(NanPolicy policy) {
  if constexpr (!F.has_nan()) {
    return 0;
  } else {
    switch (policy) {
      case NanPolicy::first_operand:
        return default_nan_bits<F>;
      case NanPolicy::canonical_nvidia:
        return static_cast<Bits<F>>(quiet_nan_bits<F> | (F.has_nan_payload() ? trailing_mask<F> : 0));
      case NanPolicy::canonical_riscv:
        return quiet_nan_bits<F>;
    }
    return default_nan_bits<F>;
  }
}

/// What an operation without a meaningful result returns (IEEE 754-2019 clause 7.2).
template <const Format& F>
FP16_HD constexpr Result<F> invalid_operation(const Attributes& attributes = {}) {
  return {.bits = default_nan<F>(attributes.nan_policy), .flags = {.invalid = true}};
}

/// The NaN that `attributes.nan_policy` chooses; invalid if any operand is a signalling NaN. At least one
/// operand must be a NaN.
template <const Format& F>
FP16_HD constexpr Result<F> propagate_nan(const Attributes& attributes, Code<F> a, Code<F> b = 0,
                                          Code<F> c = 0) {
  const Bits<F> first = is_nan<F>(a) ? a : is_nan<F>(b) ? b : c;
  const bool signalling = is_signalling_nan<F>(a) || is_signalling_nan<F>(b) || is_signalling_nan<F>(c);
  const Bits<F> bits = attributes.nan_policy == NanPolicy::first_operand
                           ? static_cast<Bits<F>>(first | quiet_bit<F>)
                           : default_nan<F>(attributes.nan_policy);
  return {.bits = bits, .flags = {.invalid = signalling}};
}

/// An infinity where the format and `attributes` allow one. Else, with overflow and inexact besides `flags`:
/// the largest finite number when saturating or where there is no NaN, a NaN otherwise.
template <const Format& F>
FP16_HD constexpr Result<F> infinite_result(bool negative, const Attributes& attributes, Flags flags = {}) {
  if constexpr (F.has_infinity()) {
    if (!attributes.saturate) return {.bits = with_sign<F>(infinity_bits<F>, negative), .flags = flags};
  }
  flags |= {.inexact = true, .overflow = true};
  if constexpr (F.has_nan()) {
    if (!attributes.saturate) return {.bits = with_sign<F>(quiet_nan_bits<F>, negative), .flags = flags};
  }
  return {.bits = with_sign<F>(max_finite_bits<F>, negative), .flags = flags};
}

/// What becomes of a finite result too large for the format.
template <const Format& F>
FP16_HD constexpr Result<F> overflowed_result(bool negative, const Attributes& attributes) {
  const Flags flags{.inexact = true, .overflow = true};
  if (overflows_to_infinity(negative, attributes.rounding))
    return infinite_result<F>(negative, attributes, flags);
  return {.bits = with_sign<F>(max_finite_bits<F>, negative), .flags = flags};
}

/// Whether |value| counts as tiny, below 2^emin.
template <const Format& F, typename UInt>
FP16_HD constexpr bool is_tiny(const Unpacked<UInt>& value, const Attributes& attributes) {
  const int top_exponent = value.exponent + bit_width(value.significand) - 1;
  if (attributes.tininess == Tininess::before_rounding || top_exponent != F.emin() - 1)
    return top_exponent < F.emin();
  const int discarded_bits = top_exponent - F.trailing_bits() - value.exponent;
  if (discarded_bits <= 0) return true;
  const UInt rounded = round_significand(value.significand, discarded_bits, value.negative, attributes).value;
  return bit_width(rounded) <= F.precision;
}

/// The code of F nearest to `value` in the direction `attributes.rounding`, rounded once; subnormals keep
/// their full grid, zero keeps its sign. In a format without zero, what is smaller than every number becomes
/// the smallest one, with underflow, and what is negative is invalid. Flags: inexact, overflow, and underflow
/// (IEEE 754-2019 clauses 7.4 to 7.6). A sticky significand must be at least two bits wider than F's
/// precision; for stochastic rounding 65 bits.
template <const Format& F, typename UInt>
FP16_HD constexpr Result<F> round_pack(const Unpacked<UInt>& value, const Attributes& attributes = {}) {
  if constexpr (!F.has_zero()) {
    if (value.negative && value.significand != 0) return invalid_operation<F>(attributes);
    const bool too_small = value.exponent + bit_width(value.significand) - 1 < F.emin();
    if (value.significand == 0 || too_small)
      return {.bits = 0, .flags = {.inexact = true, .underflow = true}};
  }
  if (value.significand == 0) return {.bits = with_sign<F>(0, value.negative), .flags = {}};

  const int top_exponent = value.exponent + bit_width(value.significand) - 1;
  if (top_exponent > F.emax()) return overflowed_result<F>(value.negative, attributes);
  const int ulp_exponent = top_exponent < F.emin() ? F.emin_subnormal() : top_exponent - F.trailing_bits();
  const int discarded_bits = ulp_exponent - value.exponent;
  // Addition instead of insertion of the significand: its leading bit, or a carry out of it, moves the
  // exponent up.
  const int exponent_field = ulp_exponent - F.emin_subnormal() - !F.has_zero();
  const bool offset_is_odd = F.trailing_bits() == 0 && exponent_field % 2 != 0;
  const RoundedSignificand<UInt> rounded =
      discarded_bits > 0
          ? round_significand(value.significand, discarded_bits, value.negative, attributes, offset_is_odd)
          : RoundedSignificand<UInt>{value.significand << -discarded_bits, false};
  const std::int64_t code =
      static_cast<std::int64_t>(rounded.value) + exponent_field * (std::int64_t{1} << F.trailing_bits());
  if (code > static_cast<std::int64_t>(max_finite_bits<F>))
    return overflowed_result<F>(value.negative, attributes);

  const bool tiny = (rounded.inexact || attributes.flush_to_zero) && is_tiny<F>(value, attributes);
  const Flags flags{.inexact = rounded.inexact || tiny, .underflow = tiny};
  if (tiny && attributes.flush_to_zero) return {.bits = with_sign<F>(0, value.negative), .flags = flags};
  return {.bits = with_sign<F>(static_cast<Bits<F>>(code), value.negative), .flags = flags};
}

}  // namespace fp16
