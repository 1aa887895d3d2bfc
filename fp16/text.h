#pragma once
/// Codes to text: the shortest decimal that reads back, the exact decimal, hexadecimal, and the fields of
/// bits. `parse` reads all of them but the fields, which `parse_fields` reads.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bits.h"
#include "decimal.h"
#include "parse.h"
#include "unpacked.h"

namespace fp16 {

namespace detail {

/// digits * 10^exponent
struct ShortDecimal {
  std::uint64_t digits;
  int exponent;
};

/// At least `width` digits, with zeros in front if need be.
constexpr void append_integer(std::string& text, std::uint64_t value, unsigned base, int width = 1) {
  if (value != 0 || width > 0) {
    append_integer(text, value / base, base, width - 1);
    text += "0123456789abcdef"[value % base];
  }
}

/// 'e' or 'p', sign, and at least `width` digits.
constexpr void append_exponent(std::string& text, char mark, int exponent, int width) {
  text += mark;
  text += exponent < 0 ? '-' : '+';
  append_integer(text, static_cast<unsigned>(exponent < 0 ? -exponent : exponent), 10, width);
}

template <const Format& F>
constexpr bool reads_back_as(ShortDecimal number, Bits<F> magnitude) {
  Decimal<F> decimal;
  for (; number.digits != 0; number.digits /= 10) {
    decimal.add_digit(number.exponent++, static_cast<int>(number.digits % 10));
  }
  return round_pack<F>(decimal.unpacked(false)).bits == magnitude;
}

/// The decimal of `count` digits that reads back as `magnitude`, its exact value being `exact`, if there is
/// one; of two the one nearer to it, and of two equally near the even one.
template <const Format& F>
constexpr std::optional<ShortDecimal> decimal_of_length(int count, const Decimal<F>& exact,
                                                        Bits<F> magnitude) {
  const int highest = exact.highest_position();
  ShortDecimal below{.digits = 0, .exponent = highest - count + 1};
  for (int position = highest; position >= below.exponent; --position) {
    below.digits = 10 * below.digits + static_cast<unsigned>(exact.digit(position));
  }
  const ShortDecimal above{.digits = below.digits + 1, .exponent = below.exponent};
  // The farther one gets its chance too: below a power of two the numbers are closer together than above it,
  // so that the nearer one may lie outside the interval that reads back, and the farther one in it.
  const int next_digit = exact.digit(below.exponent - 1);
  const bool tie = next_digit == 5 && exact.lowest_position() == below.exponent - 1;
  const bool above_is_nearer = tie ? below.digits % 2 != 0 : next_digit >= 5;
  const ShortDecimal& nearer = above_is_nearer ? above : below;
  const ShortDecimal& farther = above_is_nearer ? below : above;
  if (reads_back_as<F>(nearer, magnitude)) return nearer;
  if (reads_back_as<F>(farther, magnitude)) return farther;
  return std::nullopt;
}

/// The decimal with the fewest digits that reads back as `magnitude`, which is finite and not zero.
template <const Format& F>
constexpr ShortDecimal shortest_decimal(Bits<F> magnitude) {
  const Decimal<F> exact(unpack<F, std::uint64_t>(magnitude));
  int too_few = 0;
  int enough = F.max_digits10();
  while (enough - too_few > 1) {
    const int count = (too_few + enough) / 2;
    (decimal_of_length<F>(count, exact, magnitude) ? enough : too_few) = count;
  }
  ShortDecimal shortest = *decimal_of_length<F>(enough, exact, magnitude);
  for (; shortest.digits % 10 == 0; shortest.digits /= 10) ++shortest.exponent;
  return shortest;
}

/// All digits of a finite number that is not zero, without an exponent.
template <const Format& F>
constexpr void append_positional(std::string& text, Bits<F> magnitude) {
  const Decimal<F> exact(unpack<F, std::uint64_t>(magnitude));
  const int highest = std::max(exact.highest_position(), 0);
  const int lowest = std::min(exact.lowest_position(), 0);
  for (int position = highest; position >= lowest; --position) {
    if (position == -1) text += '.';
    text += static_cast<char>('0' + exact.digit(position));
  }
}

template <const Format& F>
constexpr void append_shortest(std::string& text, Bits<F> magnitude) {
  const ShortDecimal shortest = shortest_decimal<F>(magnitude);
  std::string digits;
  append_integer(digits, shortest.digits, 10);
  const int count = static_cast<int>(digits.size());
  const int leading = shortest.exponent + count - 1;

  std::string scientific(1, digits[0]);
  if (count > 1) scientific.append(".").append(digits, 1);
  append_exponent(scientific, 'e', leading, 2);
  const int fixed_size = leading < 0 ? count + 1 - leading : shortest.exponent >= 0 ? leading + 1 : count + 1;
  if (fixed_size > static_cast<int>(scientific.size())) {
    text += scientific;
  } else if (shortest.exponent >= 0) {
    append_positional<F>(text, magnitude);
  } else if (leading < 0) {
    text.append("0.").append(static_cast<std::size_t>(-leading - 1), '0').append(digits);
  } else {
    const auto whole_digits = static_cast<std::size_t>(leading + 1);
    text.append(digits, 0, whole_digits).append(".").append(digits, whole_digits);
  }
}

template <const Format& F>
constexpr void append_hexadecimal(std::string& text, Bits<F> magnitude) {
  const Unpacked<std::uint64_t> value = unpack<F, std::uint64_t>(magnitude);
  const int width = bit_width(value.significand);
  std::uint64_t fraction = value.significand << (64 - width) << 1;
  text += fraction != 0 ? "0x1." : "0x1";
  for (; fraction != 0; fraction <<= 4) append_integer(text, fraction >> 60, 16);
  append_exponent(text, 'p', value.exponent + width - 1, 1);
}

template <const Format& F>
constexpr void append_nan(std::string& text, Bits<F> nan) {
  text += is_signalling_nan<F>(nan) ? "snan" : "nan";
  const std::uint64_t payload = nan & max_nan_payload<F>;
  if (payload == 0) return;
  text += "(0x";
  append_integer(text, payload, 16);
  text += ')';
}

/// The sign, and then the NaN, the infinity, `zero`, or what `append_number` makes of the magnitude.
template <const Format& F>
constexpr std::string text_of(Bits<F> bits, const char* zero, void (*append_number)(std::string&, Bits<F>)) {
  std::string text;
  if (is_negative<F>(bits) && (F.has_negative_zero() || !is_nan<F>(bits))) text += '-';
  if (is_nan<F>(bits)) {
    append_nan<F>(text, bits);
  } else if (is_infinite<F>(bits)) {
    text += "inf";
  } else if (is_zero<F>(bits)) {
    text += zero;
  } else {
    append_number(text, magnitude<F>(bits));
  }
  return text;
}

}  // namespace detail

/// The decimal with the fewest significant digits that `parse` reads as `bits` (nearest-even); of several the
/// one nearest to the exact value, and of two equally near the even one. Laid out as by std::to_chars:
/// without an exponent unless that is longer, whole numbers then with all their digits (`65504`, `0.1`,
/// `6e-08`). NaNs: `nan`, `nan(0x1f)`, `snan(0x100)`, with their sign.
///
/// How it is known: every binary16 code by a search among exact rationals; binary64 and binary32 against
/// std::to_chars; every code of the formats of up to 8 bits reads back.
template <const Format& F>
constexpr std::string to_shortest(Code<F> bits) {
  return detail::text_of<F>(bits, "0", detail::append_shortest<F>);
}

/// Every digit of the exact value, without an exponent; zeros, infinities and NaNs as in `to_shortest`.
template <const Format& F>
constexpr std::string to_exact(Code<F> bits) {
  return detail::text_of<F>(bits, "0", detail::append_positional<F>);
}

/// The exact value in hexadecimal with a power of two: `0x1.8p-3`, as printf's `%a` writes a normal number;
/// subnormal numbers too start with 1. Zero is `0x0p+0`, infinities and NaNs as in `to_shortest`.
template <const Format& F>
constexpr std::string to_hex(Code<F> bits) {
  return detail::text_of<F>(bits, "0x0p+0", detail::append_hexadecimal<F>);
}

/// Sign, biased exponent and trailing significand in binary, with spaces between: `0 10100 1010000000`.
/// Fields that F does not have are left out.
template <const Format& F>
constexpr std::string to_fields(Code<F> bits) {
  std::string text;
  for (int bit = F.width() - 1; bit >= 0; --bit) {
    text += (bits >> bit & 1) != 0 ? '1' : '0';
    if (bit != 0 && (bit == F.width() - F.is_signed() || bit == F.trailing_bits())) text += ' ';
  }
  return text;
}

}  // namespace fp16
