#pragma once
/// Fixed-point decimals of a format's own size: where its numbers meet decimal text, exactly.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "format.h"
#include "rounding.h"
#include "unpacked.h"

namespace fp16::detail {

/// A non-negative decimal number, in limbs of nine digits, from the decimal place 10^u to beyond the largest
/// number of F, where u = emin_subnormal - 66. It holds every finite number of F exactly, and of any other
/// number what decides its rounding to F:
///
/// The numbers at which a rounding to F, the tininess of its result or one of its first 64 discarded bits
/// (stochastic rounding) changes are all whole multiples of 2^u, hence of 10^u, as u < 0. None of them lies
/// strictly between two neighbouring multiples of 10^u. So of the digits below that place only one thing
/// matters: whether any of them differs from zero.
///
/// The remainder of a division by a power of two counts as such a digit. `unpacked` divides only numbers of
/// at least 10^36, by 2^32 at a time: the leading 128 bits of the quotient end above 2^-41, so that its
/// digits below 10^u decide no more than before.
template <const Format& F>
class Decimal {
 public:
  constexpr Decimal() = default;

  explicit constexpr Decimal(const Unpacked<std::uint64_t>& magnitude) {
    limbs_[point] = static_cast<std::uint32_t>(magnitude.significand % base);
    limbs_[point + 1] = static_cast<std::uint32_t>(magnitude.significand / base);
    low_ = point;
    high_ = point + 2;
    trim();
    for (int left = magnitude.exponent; left > 0; left -= 32) shift_left(std::min(left, 32));
    for (int right = -magnitude.exponent; right > 0; right -= 32) shift_right(std::min(right, 32));
  }

  /// Adds digit * 10^position; the place must be empty.
  constexpr void add_digit(std::int64_t position, int digit) {
    if (digit == 0) return;
    if (position >= digits_per_limb * (limb_count - point)) {
      too_large_ = true;
    } else if (position < -digits_per_limb * point) {
      more_below_ = true;
    } else {
      const int place = static_cast<int>(position) + digits_per_limb * point;
      const int limb = place / digits_per_limb;
      limbs_[limb] += static_cast<std::uint32_t>(digit) * powers_of_ten[place % digits_per_limb];
      low_ = std::min(low_, limb);
      high_ = std::max(high_, limb + 1);
    }
  }

  /// The digit at 10^position.
  constexpr int digit(int position) const {
    const int place = position + digits_per_limb * point;
    if (place < 0) return 0;
    return static_cast<int>(limbs_[place / digits_per_limb] / powers_of_ten[place % digits_per_limb] % 10);
  }

  /// Position of the highest digit that is not zero; the number must not be zero.
  constexpr int highest_position() const {
    int position = digits_per_limb * (high_ - point) - 1;
    while (digit(position) == 0) --position;
    return position;
  }

  /// Position of the lowest digit that is not zero; the number must not be zero.
  constexpr int lowest_position() const {
    int position = digits_per_limb * (low_ - point);
    while (digit(position) == 0) ++position;
    return position;
  }

  /// The number with its sign, for `round_pack` to F: its leading 128 bits, or as many of them as are worth
  /// 2^u or more, the lowest one sticky.
  constexpr Unpacked<uint128> unpacked(bool negative) const {
    if (too_large_) return {.negative = negative, .exponent = F.emax() + 1, .significand = 1};
    Decimal scaled = *this;
    int exponent = 0;
    for (; scaled.high_ > point + 4; exponent += 32) scaled.shift_right(32);  // until below 10^36 < 2^128
    while (exponent > unit_exponent) {
      const int missing = 128 - bit_width(scaled.whole_part());
      if (missing == 0) break;
      const int shift = std::min({missing, 32, exponent - unit_exponent});
      scaled.shift_left(shift);
      exponent -= shift;
    }
    const bool fraction = scaled.low_ < std::min(scaled.high_, point);
    return {.negative = negative,
            .exponent = exponent,
            .significand = scaled.whole_part() | (fraction || scaled.more_below_)};
  }

 private:
  static constexpr int unit_exponent = F.emin_subnormal() - 66;  ///< u
  static constexpr std::uint32_t base = 1'000'000'000;
  static constexpr int digits_per_limb = 9;
  // Not std::array, whose index is unsigned.
  static constexpr std::uint32_t powers_of_ten[digits_per_limb]{
      1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
  /// Limbs below the decimal point, which is also the index of the limb of ones.
  static constexpr int point = -unit_exponent / digits_per_limb + 1;
  /// At least the five whole limbs of numbers below 2^128.
  static constexpr int limb_count =
      point + std::max(5, whole_decimal_digits(F.emax() + 1) / digits_per_limb + 1);

  /// The number below 2^128, without its fraction.
  constexpr uint128 whole_part() const {
    uint128 whole = 0;
    for (int i = high_ - 1; i >= point; --i) whole = whole * base + limbs_[i];
    return whole;
  }

  /// Multiplies by 2^bits, 1 to 32 of them; the product must not be too large.
  constexpr void shift_left(int bits) {
    std::uint64_t carry = 0;
    int i = low_;
    for (; i < limb_count && (i < high_ || carry != 0); ++i) {
      const std::uint64_t product = (std::uint64_t{limbs_[i]} << bits) + carry;
      limbs_[i] = static_cast<std::uint32_t>(product % base);
      carry = product / base;
    }
    high_ = i;
    trim();
  }

  /// Divides by 2^bits, 1 to 32 of them.
  constexpr void shift_right(int bits) {
    std::uint64_t remainder = 0;
    int i = high_;
    while (i > low_ || (i > 0 && remainder != 0)) {
      --i;
      const std::uint64_t dividend = remainder * base + limbs_[i];
      limbs_[i] = static_cast<std::uint32_t>(dividend >> bits);
      remainder = dividend - (std::uint64_t{limbs_[i]} << bits);
    }
    low_ = i;
    more_below_ |= remainder != 0;
    trim();
  }

  constexpr void trim() {
    while (low_ < high_ && limbs_[high_ - 1] == 0) --high_;
    while (low_ < high_ && limbs_[low_] == 0) ++low_;
  }

  std::uint32_t limbs_[std::size_t{limb_count}]{};  ///< from the lowest to the highest
  int low_ = limb_count;                            ///< limbs outside low_ .. high_ - 1 are zero
  int high_ = 0;
  bool more_below_ = false;  ///< a digit below the lowest limb is not zero
  bool too_large_ = false;   ///< a digit above the highest limb is not zero
};

}  // namespace fp16::detail
