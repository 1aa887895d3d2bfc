#pragma once
/// Text of halves: strings, streams, the literal `1.5_h`, and reading with exceptions.

#include <array>
#include <cctype>
#include <cstddef>
#include <istream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "half.h"
#include "parse.h"
#include "text.h"

namespace fp16 {

namespace detail {

/// `text` in quotes on one line, shortened.
constexpr std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string quoted = "\"";
  for (const char c : text.substr(0, longest)) quoted += c >= ' ' && c <= '~' ? c : '?';
  return quoted + (text.size() > longest ? "...\"" : "\"");
}

constexpr std::string what_is_allowed(const ParseResult<binary16>& result) {
  if (result.error == std::errc::invalid_argument) {
    return "expected a decimal number (-1.5e-3), a hexadecimal one (0x1.8p-3), inf, infinity, nan, "
           "nan(PAYLOAD) or snan(PAYLOAD)";
  }
  if (result.error == std::errc::result_out_of_range) {
    const std::string largest = std::to_string(max_nan_payload<binary16>);
    return "the payload of a NaN must lie in 0 .. " + largest + ", of a signalling one in 1 .. " + largest;
  }
  return "nothing may follow the number";
}

/// Whether a number may go on with `next` after `text`: letters, digits and points always, signs in front of
/// it and of an exponent, parentheses around the payload of a NaN.
inline bool may_continue_number(std::string_view text, char next) {
  const char previous = text.empty() ? '\0' : text.back();
  const auto follows = [&](char lower) { return previous == lower || previous == lower - 'a' + 'A'; };
  switch (next) {
    case '+':
    case '-':
      return text.empty() || follows(text.find_first_of("xX") == text.npos ? 'e' : 'p');
    case '(':
      return follows('n') && text.find('(') == text.npos;
    case ')':
      return previous != ')' && text.find('(') != text.npos;
    default:
      return next == '.' || (next >= '0' && next <= '9') || (next >= 'a' && next <= 'z') ||
             (next >= 'A' && next <= 'Z');
  }
}

/// Not to be defined: compilers show its name where a literal is wrong.
void expected_a_decimal_or_hexadecimal_number_below_65520();

}  // namespace detail

#ifdef FP16_HAS_EXCEPTIONS
/// The whole of `text` as `parse` reads it. Throws std::invalid_argument with text, position (from 0) and
/// what is allowed there, if it is no number or more than one.
constexpr half parse_half(std::string_view text, const Attributes& attributes = {}) {
  const ParseResult<binary16> result = parse<binary16>(text, attributes);
  const auto read = static_cast<std::size_t>(result.end - text.data());
  if (result.error != std::errc{} || read != text.size()) {
    throw std::invalid_argument("not a half: " + detail::quoted(text) + ", position " + std::to_string(read) +
                                ": " + detail::what_is_allowed(result));
  }
  return half::from_bits(result.bits);
}
#endif

/// The texts of text.h.
inline std::string to_shortest(half a) {
  return to_shortest<binary16>(a.bits());
}
inline std::string to_exact(half a) {
  return to_exact<binary16>(a.bits());
}
inline std::string to_hex(half a) {
  return to_hex<binary16>(a.bits());
}
inline std::string to_fields(half a) {
  return to_fields<binary16>(a.bits());
}
/// `to_shortest`, not the six places that std::to_string gives a float.
inline std::string to_string(half a) {
  return to_shortest(a);
}

/// The shortest decimal that reads back (`to_shortest`), with the stream's width, fill, adjustment, sign and
/// upper case. Where the stream's precision is not the initial 6, or its notation is fixed, scientific,
/// hexfloat or showpoint, the exact value as the stream writes a double.
inline std::ostream& operator<<(std::ostream& stream, half a) {
  const std::ios_base::fmtflags flags = stream.flags();
  const bool as_double = (flags & (std::ios_base::floatfield | std::ios_base::showpoint)) != 0;
  if (as_double || stream.precision() != 6) return stream << static_cast<double>(a);

  std::string text = to_shortest(a);
  if ((flags & std::ios_base::uppercase) != 0) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  if ((flags & std::ios_base::showpos) != 0 && !signbit(a)) text.insert(text.begin(), '+');
  const auto width = static_cast<std::size_t>(stream.width());
  if ((flags & std::ios_base::adjustfield) == std::ios_base::internal && text.size() < width) {
    const std::size_t sign_size = text[0] == '-' || text[0] == '+';
    text.insert(sign_size, width - text.size(), stream.fill());
  }
  return stream << text;
}

/// Reads the longest run of characters that numbers are made of, after leading space. Sets failbit where they
/// are no number (the half becomes 0), and on overflow (it becomes infinite).
inline std::istream& operator>>(std::istream& stream, half& a) {
  using Traits = std::istream::traits_type;
  const std::istream::sentry ready(stream);
  if (!ready) return stream;
  std::string text;
  for (int next = stream.peek(); next != Traits::eof(); next = stream.peek()) {
    if (!detail::may_continue_number(text, Traits::to_char_type(next))) break;
    text += Traits::to_char_type(stream.get());
  }

  const ParseResult<binary16> result = parse<binary16>(text);
  const bool is_number = result.error == std::errc{} && result.end == text.data() + text.size();
  a = is_number ? half::from_bits(result.bits) : half();
  if (!is_number || result.flags.overflow) stream.setstate(std::ios_base::failbit);
  return stream;
}

inline namespace literals {

/// `1.5_h`, `0x1.8p-3_h`, `65'504_h`: the half nearest to the number as written. What is no number, an octal
/// or binary integer, or a number that overflows does not compile.
template <char... characters>
consteval half operator""_h() {
  std::array<char, sizeof...(characters)> text{};
  std::size_t size = 0;
  for (const char c : {characters...}) {
    if (c != '\'') text[size++] = c;
  }
  const std::string_view number(text.data(), size);
  const bool octal = size > 1 && number[0] == '0' && number.find_first_not_of("0123456789") == number.npos;
  const ParseResult<binary16> result = parse<binary16>(number);
  if (octal || result.error != std::errc{} || result.end != number.data() + size || result.flags.overflow) {
    detail::expected_a_decimal_or_hexadecimal_number_below_65520();
  }
  return half::from_bits(result.bits);
}

}  // namespace literals

}  // namespace fp16
