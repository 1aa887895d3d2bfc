#pragma once
/// Numbers of any length: exact sums and products, quotients and roots to as many bits as asked for; what a rounding discards
/// of them, and their decimals.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/unpacked.h"

namespace halflab::show {

/// A whole number, 32 bits a limb from the lowest on; no leading zeros.
using Limbs = std::vector<std::uint32_t>;

/// ±(magnitude + something in (0, 1) where `has_more`) * 2^exponent.
class ExactNumber {
 public:
  /// A number whose bits do not end is kept to so many.
  static constexpr int leading_bit_count = 192;
  /// The largest exponent of two or ten that is read, and the longest mantissa.
  static constexpr int largest_read = 5000;

  ExactNumber() = default;
  ExactNumber(bool negative, Limbs magnitude, int exponent, bool has_more = false)
      : negative_(negative), has_more_(has_more), magnitude_(std::move(magnitude)), exponent_(exponent) {}
  explicit ExactNumber(const fp16::Unpacked<std::uint64_t>& number);

  /// A decimal or hexadecimal number as fp16::parse reads it, no infinity and no NaN. Exact, but for a decimal fraction
  /// that is no binary one. Throws std::invalid_argument beyond largest_read.
  static ExactNumber from_text(std::string_view text);

  bool is_zero() const { return magnitude_.empty() && !has_more_; }
  bool is_negative() const { return negative_; }
  /// Whether not all of its bits are there.
  bool has_more() const { return has_more_; }

  /// Of the leading bit; not zero.
  int leading_exponent() const;
  bool bit(int exponent) const;
  bool has_bits_below(int exponent) const;

  /// Without the bits below 2^exponent.
  ExactNumber cut_below(int exponent) const;
  /// Its first `count` bits, with zeros behind fewer.
  ExactNumber cut_behind(int count, bool has_more) const;

  /// Its leading bits, the last of them sticky, for fp16::round_pack.
  fp16::Unpacked<fp16::uint128> leading() const;
  /// floor(fraction * 2^64) of the fraction of 2^exponent in the magnitude.
  std::uint64_t fraction_below(int exponent) const;

  /// All digits without an exponent; where these are more than `most` or do not end: 24 significant ones, in scientific
  /// notation where that is shorter, after "about ".
  std::string decimal(std::size_t most = 1200) const;
  /// As fp16::to_hex writes it, "..." behind what is not all; at most 40 digits.
  std::string hexadecimal() const;
  /// In binary up to the bit of 2^last, "1.0000000000"; not zero.
  std::string binary_down_to(int last) const;

  // Operands have all their bits.
  friend ExactNumber operator+(const ExactNumber& a, const ExactNumber& b);
  friend ExactNumber operator-(const ExactNumber& a) {
    return {!a.negative_, a.magnitude_, a.exponent_, a.has_more_};
  }
  friend ExactNumber operator*(const ExactNumber& a, const ExactNumber& b);
  /// To `bits` significant ones or more; b is not zero.
  friend ExactNumber quotient(const ExactNumber& a, const ExactNumber& b, int bits);
  friend ExactNumber operator/(const ExactNumber& a, const ExactNumber& b) {
    return quotient(a, b, leading_bit_count);
  }
  /// The root of what is not negative, to `bits` significant ones.
  friend ExactNumber square_root(const ExactNumber& a, int bits);

  /// a / b as a double, to a few units in its last place; b is not zero.
  friend double ratio(const ExactNumber& a, const ExactNumber& b);

 private:
  double leading_fraction() const;

  bool negative_ = false;
  bool has_more_ = false;
  Limbs magnitude_;
  int exponent_ = 0;
};

}  // namespace halflab::show
