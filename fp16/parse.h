#pragma once
/// Text to codes, rounded once, whatever its length: decimal and hexadecimal numbers, infinities, NaNs.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "bits.h"
#include "decimal.h"
#include "rounding.h"
#include "unpacked.h"

namespace fp16 {

/// What was read, like that of std::from_chars.
template <const Format& F>
struct ParseResult {
  Bits<F> bits;
  Flags flags;
  /// One past the last character read. After an error, the character where no number can go on any more.
  const char* end;
  /// invalid_argument: no number starts the text. result_out_of_range: a NaN's payload does not fit. Else
  /// zero; numbers too large or too small for the format are no errors but have flags.
  std::errc error;
};

namespace detail {

/// Reads a text from its front; letters in either case.
class Cursor {
 public:
  explicit constexpr Cursor(std::string_view text) : text_(text) {}

  constexpr const char* position() const { return text_.data(); }

  /// `lower` as the next character, in either case.
  constexpr bool take(char lower) {
    if (text_.empty() || to_lower(text_.front()) != lower) return false;
    text_.remove_prefix(1);
    return true;
  }

  constexpr bool take(std::string_view lower_word) {
    const Cursor start = *this;
    for (const char lower : lower_word) {
      if (!take(lower)) {
        *this = start;
        return false;
      }
    }
    return true;
  }

  /// The next character as a digit of `base` (10 or 16); -1 if it is none.
  constexpr int take_digit(int base) {
    const int digit = text_.empty() ? -1 : digit_value(to_lower(text_.front()));
    if (digit < 0 || digit >= base) return -1;
    text_.remove_prefix(1);
    return digit;
  }

 private:
  static constexpr char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  static constexpr int digit_value(char lower) {
    if (lower >= '0' && lower <= '9') return lower - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  }

  std::string_view text_;
};

/// A run of digits with at most one point, and the exponent behind it.
struct Numeral {
  Cursor digits;              ///< at the first of them
  std::int64_t count;         ///< digits, the point not counted
  std::int64_t whole_digits;  ///< how many of them stand before the point
  std::int64_t exponent;      ///< 0 if there is none
};

/// An exponent with its mark ('e' or 'p'), or 0 with nothing taken. Exponents beyond ±10^18 become that: no
/// text is long enough for its digits to bring such a number back into a format's range.
constexpr std::int64_t take_exponent(Cursor& cursor, char mark) {
  constexpr std::int64_t limit = 1'000'000'000'000'000'000;
  Cursor ahead = cursor;
  if (!ahead.take(mark)) return 0;
  const bool negative = ahead.take('-');
  if (!negative) ahead.take('+');
  int digit = ahead.take_digit(10);
  if (digit < 0) return 0;
  std::int64_t exponent = 0;
  for (; digit >= 0; digit = ahead.take_digit(10)) {
    exponent = exponent < limit / 10 ? 10 * exponent + digit : limit;
  }
  cursor = ahead;
  return negative ? -exponent : exponent;
}

/// `count` is 0 if there is no digit; nothing is taken then.
constexpr Numeral take_numeral(Cursor& cursor, int base, char exponent_mark) {
  Numeral numeral{.digits = cursor, .count = 0, .whole_digits = 0, .exponent = 0};
  Cursor ahead = cursor;
  bool point = false;
  for (;;) {
    if (ahead.take_digit(base) >= 0) {
      ++numeral.count;
      numeral.whole_digits += !point;
    } else if (point || !ahead.take('.')) {
      break;
    } else {
      point = true;
    }
  }
  if (numeral.count == 0) return numeral;
  cursor = ahead;
  numeral.exponent = take_exponent(cursor, exponent_mark);
  return numeral;
}

/// Calls visit(digit) for each digit from the first.
template <typename Visit>
constexpr void for_each_digit(Numeral numeral, int base, Visit visit) {
  for (std::int64_t i = 0; i < numeral.count; ++i) {
    numeral.digits.take('.');
    visit(numeral.digits.take_digit(base));
  }
}

template <const Format& F>
constexpr Unpacked<uint128> decimal_value(const Numeral& numeral, bool negative) {
  Decimal<F> decimal;
  std::int64_t position = numeral.whole_digits + numeral.exponent;
  for_each_digit(numeral, 10, [&](int digit) { decimal.add_digit(--position, digit); });
  return decimal.unpacked(negative);
}

/// The leading digits that fit into 128 bits, at least 125 of them significant; the rest is sticky.
constexpr Unpacked<uint128> hexadecimal_value(const Numeral& numeral, bool negative) {
  constexpr std::int64_t beyond_every_format = 1'000'000;
  uint128 significand = 0;
  std::int64_t exponent = numeral.exponent - 4 * (numeral.count - numeral.whole_digits);
  for_each_digit(numeral, 16, [&](int digit) {
    if (significand >> 124 == 0) {
      significand = significand << 4 | static_cast<unsigned>(digit);
    } else {
      significand |= digit != 0;
      exponent += 4;
    }
  });
  exponent = std::clamp(exponent, -beyond_every_format, beyond_every_format);
  return {.negative = negative, .exponent = static_cast<int>(exponent), .significand = significand};
}

/// Largest payload of a NaN of F, counted without the quiet bit.
template <const Format& F>
inline constexpr std::uint64_t max_nan_payload = F.has_nan_payload() ? quiet_bit<F> - std::uint64_t{1} : 0;

/// "(payload)" in decimal or hexadecimal; `if_absent`, with nothing taken, where no such thing follows. A
/// payload that is too large comes back as some number that is too large.
template <const Format& F>
constexpr std::uint64_t take_payload(Cursor& cursor, std::uint64_t if_absent) {
  Cursor ahead = cursor;
  if (!ahead.take('(')) return if_absent;
  const int base = ahead.take("0x") ? 16 : 10;
  int digit = ahead.take_digit(base);
  if (digit < 0) return if_absent;
  std::uint64_t payload = 0;
  for (; digit >= 0; digit = ahead.take_digit(base)) {
    if (payload <= max_nan_payload<F>)
      payload = static_cast<unsigned>(base) * payload + static_cast<unsigned>(digit);
  }
  if (!ahead.take(')')) return if_absent;
  cursor = ahead;
  return payload;
}

/// What follows "nan" or "snan".
template <const Format& F>
constexpr ParseResult<F> parse_nan(Cursor cursor, bool negative, bool signalling,
                                   const Attributes& attributes) {
  const char* const start = cursor.position();
  const std::uint64_t payload = take_payload<F>(cursor, signalling ? quiet_bit<F> >> 1 : 0);
  if (payload > max_nan_payload<F> || (signalling && payload == 0)) {
    return {.bits = 0, .flags = {}, .end = start, .error = std::errc::result_out_of_range};
  }
  Result<F> nan = invalid_operation<F>(attributes);
  if constexpr (F.has_nan()) {
    const std::uint64_t quiet = quiet_nan_bits<F> + payload;
    const std::uint64_t magnitude = signalling ? quiet - quiet_bit<F> : quiet;
    nan = {.bits = with_sign<F>(static_cast<Bits<F>>(magnitude), negative), .flags = {}};
  }
  return {.bits = nan.bits, .flags = nan.flags, .end = cursor.position(), .error = {}};
}

}  // namespace detail

/// The number at the start of `text`, rounded once to F as `attributes` say, with the flags of IEEE 754-2019
/// clause 5.12. No locale, no allocation, no limit of length: digits far behind decide ties, and exponents
/// may have any size.
///
/// Read are, with an optional sign and letters in either case:
/// - decimal numbers: `65504`, `.5`, `1.`, `6.1e-5`;
/// - hexadecimal numbers, the exponent a power of two: `0x1.8p-3`, `0x1.8`;
/// - `inf`, `infinity`;
/// - `nan`, `nan(5)`, `nan(0x1f)`: quiet, with the payload in the bits below the quiet bit, 0 if not given;
/// - `snan`, `snan(5)`: signalling, the payload not 0; if not given, that of std::numeric_limits.
///
/// Leading space is not skipped. Overflow, underflow and what F does not have become what they become in
/// `convert`, but for NaNs, which keep sign and payload under every `nan_policy`; `denormals_are_zero` is
/// about operands and does nothing here. Errors: see ParseResult.
///
/// How it is known: binary16 against exact rationals in six directions with flags, at every tie, just beside
/// it, and beside it a thousand digits later; binary64 and binary32 against glibc's strtod in its four
/// directions; the formats of up to 8 bits against exact rationals.
template <const Format& F>
constexpr ParseResult<F> parse(std::string_view text, const Attributes& attributes = {}) {
  detail::Cursor cursor(text);
  const bool negative = cursor.take('-');
  if (!negative) cursor.take('+');
  const auto read = [&](const Result<F>& result) {
    return ParseResult<F>{.bits = result.bits, .flags = result.flags, .end = cursor.position(), .error = {}};
  };

  if (cursor.take("inf")) {
    cursor.take("inity");
    return read(negative && !F.is_signed() ? invalid_operation<F>(attributes)
                                           : infinite_result<F>(negative, attributes));
  }
  if (cursor.take("nan")) return detail::parse_nan<F>(cursor, negative, false, attributes);
  if (cursor.take("snan")) return detail::parse_nan<F>(cursor, negative, true, attributes);

  detail::Cursor behind_prefix = cursor;
  if (behind_prefix.take("0x")) {
    const detail::Numeral hexadecimal = detail::take_numeral(behind_prefix, 16, 'p');
    if (hexadecimal.count != 0) {
      cursor = behind_prefix;
      return read(round_pack<F>(detail::hexadecimal_value(hexadecimal, negative), attributes));
    }
  }
  const detail::Numeral decimal = detail::take_numeral(cursor, 10, 'e');
  if (decimal.count == 0) {
    return {.bits = 0, .flags = {}, .end = cursor.position(), .error = std::errc::invalid_argument};
  }
  return read(round_pack<F>(detail::decimal_value<F>(decimal, negative), attributes));
}

/// The fields of a code as `to_fields` writes them: every bit of it, spaces between the fields. Errors:
/// invalid_argument, at the first character that is none of this.
template <const Format& F>
constexpr ParseResult<F> parse_fields(std::string_view text) {
  detail::Cursor cursor(text);
  std::uint64_t bits = 0;
  for (int bit = F.width() - 1; bit >= 0; --bit) {
    const bool one = cursor.take('1');
    const bool field_ends = bit == F.width() - F.is_signed() || bit == F.trailing_bits();
    if ((!one && !cursor.take('0')) || (field_ends && bit != 0 && !cursor.take(' '))) {
      return {.bits = 0, .flags = {}, .end = cursor.position(), .error = std::errc::invalid_argument};
    }
    bits = 2 * bits + one;
  }
  return {.bits = static_cast<Bits<F>>(bits), .flags = {}, .end = cursor.position(), .error = {}};
}

}  // namespace fp16
