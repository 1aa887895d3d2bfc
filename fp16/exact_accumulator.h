#pragma once
/// Exact sums of values and products: a fixed-point integer that holds every bit of them.

#include <cstddef>
#include <cstdint>

#include "arithmetic.h"
#include "config.h"
#include "unpacked.h"

namespace fp16 {

/// A sum of values and products of two values of F as one fixed-point integer in two's complement, wide
/// enough for every bit of them (Kulisch, "Computer Arithmetic and Validity", 2008). Nothing is rounded
/// before `rounded`, so that neither the order of the terms nor how they are split among accumulators has an
/// influence.
///
/// Width: with the unit 2^(2 emin_subnormal) every value and product is an integer, below 2^term_bits in
/// magnitude because |value| < 2^(emax+1). n terms stay below n 2^term_bits, so that an integer of w bits
/// holds 2^(w - 1 - term_bits) terms. binary16: products span 2^-48 to 2^32, 80 bits; 128 bits hold 2^47
/// terms. The number of limbs is the smallest that gives at least 2^40.
///
/// How it is known: sums and products of halves, floats and doubles against exact rationals in six
/// directions; in every format sums of two values, products and fused multiply-adds against arithmetic.h.
template <const Format& F>
requires(F.has_arithmetic()) class ExactAccumulator {
 public:
  static constexpr int unit_exponent = 2 * F.emin_subnormal();
  static constexpr int term_bits = 2 * (F.emax() + 1) - unit_exponent;
  static constexpr int limb_count = (term_bits + 1 + 40 + 63) / 64;
  /// The accumulator holds any sum of at most 2^max_terms_log2 terms.
  static constexpr int max_terms_log2 = 64 * limb_count - 1 - term_bits;

  FP16_HD constexpr void add(Code<F> a) {
    if (is_nan<F>(a)) {
      add_nan(is_signalling_nan<F>(a));
    } else if (is_infinite<F>(a)) {
      add_infinity(is_negative<F>(a));
    } else {
      add_finite(unpack<F, uint128>(a));
    }
  }

  /// The exact product; infinity * 0 is invalid.
  FP16_HD constexpr void add_product(Code<F> a, Code<F> b) {
    if (is_nan<F>(a) || is_nan<F>(b)) {
      add_nan(is_signalling_nan<F>(a) || is_signalling_nan<F>(b));
    } else if (is_finite<F>(a) && is_finite<F>(b)) {
      add_finite(detail::product(unpack<F, uint128>(a), unpack<F, uint128>(b)));
    } else if (is_zero<F>(a) || is_zero<F>(b)) {
      add_nan(true);
    } else {
      add_infinity(is_negative<F>(a) != is_negative<F>(b));
    }
  }

  /// Adds the sum of some terms, units * 2^exponent, exponent >= unit_exponent; whether some of them were positive and
  /// some negative, zeros by their sign, decides the sign of an exact zero.
  FP16_HD constexpr void add_sum(std::int64_t units, int exponent, bool some_positive, bool some_negative) {
    positive_term_ |= some_positive;
    negative_term_ |= some_negative;
    const auto bits = static_cast<std::uint64_t>(units);
    add_to_limbs({.negative = units < 0, .exponent = exponent, .significand = units < 0 ? 0 - bits : bits});
  }

  /// Adds the terms of another accumulator.
  FP16_HD constexpr void merge(const ExactAccumulator& other) {
    std::uint64_t carry = 0;
    for (int i = 0; i < limb_count; ++i) carry = add_to_limb(i, other.limbs_[i], carry);
    positive_term_ |= other.positive_term_;
    negative_term_ |= other.negative_term_;
    positive_infinity_ |= other.positive_infinity_;
    negative_infinity_ |= other.negative_infinity_;
    nan_ |= other.nan_;
    invalid_ |= other.invalid_;
  }

  /// The sum, rounded once. A zero has the sign of the terms where all have the same; otherwise it is -0
  /// toward_negative, else +0, as of a single addition. Infinities of both signs are invalid. A NaN is the
  /// one that `attributes.nan_policy` gives where there is no operand, since the first operand would depend
  /// on the order.
  template <const Format& To>
  FP16_HD constexpr Result<To> rounded(const Attributes& attributes = {}) const {
    if (nan_)
      return {.bits = default_nan<To>(attributes.nan_policy),
              .flags = {.invalid = invalid_ || !To.has_nan()}};
    if (positive_infinity_ && negative_infinity_) return invalid_operation<To>(attributes);
    if (positive_infinity_ || negative_infinity_) {
      if (negative_infinity_ && !To.is_signed()) return invalid_operation<To>(attributes);
      return infinite_result<To>(negative_infinity_, attributes);
    }
    Unpacked<uint128> sum = leading_bits();
    if (sum.significand == 0) {
      sum.negative = negative_term_ && (!positive_term_ || attributes.rounding == Rounding::toward_negative);
    }
    return round_pack<To>(sum, attributes);
  }

 private:
  FP16_HD constexpr void add_nan(bool invalid) {
    nan_ = true;
    invalid_ |= invalid;
  }
  FP16_HD constexpr void add_infinity(bool negative) {
    (negative ? negative_infinity_ : positive_infinity_) = true;
  }

  FP16_HD constexpr std::uint64_t add_to_limb(int index, std::uint64_t addend, std::uint64_t carry) {
    const uint128 sum = uint128{limbs_[index]} + addend + carry;
    limbs_[index] = static_cast<std::uint64_t>(sum);
    return static_cast<std::uint64_t>(sum >> 64);
  }

  FP16_HD constexpr void add_finite(const Unpacked<uint128>& term) {
    (term.negative ? negative_term_ : positive_term_) = true;
    add_to_limbs(term);
  }

  /// A negative term is added as its complement, with a carry into its lowest limb.
  FP16_HD constexpr void add_to_limbs(const Unpacked<uint128>& term) {
    const int offset = term.exponent - unit_exponent;
    const int shift = offset % 64;
    const uint128 low = term.significand << shift;
    const uint128 high = shift == 0 ? 0 : term.significand >> (128 - shift);
    const std::uint64_t parts[3]{static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(low >> 64),
                                 static_cast<std::uint64_t>(high)};
    std::uint64_t carry = term.negative;
    for (int i = offset / 64, k = 0; i < limb_count; ++i, ++k) {
      const std::uint64_t part = k < 3 ? parts[k] : 0;
      carry = add_to_limb(i, term.negative ? ~part : part, carry);
    }
  }

  /// The integer's leading 126 bits, the last one sticky.
  FP16_HD constexpr Unpacked<uint128> leading_bits() const {
    const bool negative = limbs_[limb_count - 1] >> 63 != 0;
    ExactAccumulator absolute;
    std::uint64_t carry = negative;
    int width = 0;
    for (int i = 0; i < limb_count; ++i) {
      carry = absolute.add_to_limb(i, negative ? ~limbs_[i] : limbs_[i], carry);
      if (absolute.limbs_[i] != 0) width = 64 * i + bit_width(absolute.limbs_[i]);
    }
    const int discarded_bits = width > 126 ? width - 126 : 0;
    uint128 kept = 0;
    bool lost = false;
    for (int i = 0; i < limb_count; ++i) {
      const std::uint64_t limb = absolute.limbs_[i];
      const int position = 64 * i - discarded_bits;
      if (limb == 0) continue;
      if (position >= 0) {
        kept |= uint128{limb} << position;
      } else if (position > -64) {
        kept |= limb >> -position;
        lost |= limb << (64 + position) != 0;
      } else {
        lost = true;
      }
    }
    return {.negative = negative, .exponent = unit_exponent + discarded_bits, .significand = kept | lost};
  }

  // Not std::array, whose index is unsigned.
  std::uint64_t limbs_[std::size_t{limb_count}]{};  // from the lowest up
  bool positive_term_ = false, negative_term_ = false;
  bool positive_infinity_ = false, negative_infinity_ = false;
  bool nan_ = false, invalid_ = false;
};

}  // namespace fp16
