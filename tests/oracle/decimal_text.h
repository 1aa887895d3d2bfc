#pragma once
/// Decimal text of exact rationals and back, by big integers. It includes nothing of the library.

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace oracle {

using Integer = boost::multiprecision::cpp_int;
using Rational = boost::multiprecision::cpp_rational;

inline Rational power_of_ten(int exponent) {
  const Integer power = boost::multiprecision::pow(Integer(10), static_cast<unsigned>(std::abs(exponent)));
  return exponent < 0 ? Rational(Integer(1), power) : Rational(power);
}

/// Digits behind the point that the number needs; the denominator must be 2^a * 5^b.
inline int decimal_places(const Rational& value) {
  Integer rest = denominator(value);
  int twos = 0, fives = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  for (; rest % 5 == 0; rest /= 5) ++fives;
  return std::max(twos, fives);
}

/// All digits of the number, without an exponent; the denominator must be 2^a * 5^b.
inline std::string decimal_text(const Rational& value) {
  const int places = decimal_places(value);
  std::string digits = Integer(numerator(Rational(abs(value) * power_of_ten(places)))).str();
  const auto fraction = static_cast<std::size_t>(places);
  if (digits.size() <= fraction) digits.insert(0, fraction + 1 - digits.size(), '0');
  if (fraction != 0) digits.insert(digits.size() - fraction, ".");
  return (value < 0 ? "-" : "") + digits;
}

/// Value of a decimal such as "-1.25e-07"; the text must be one.
inline Rational decimal_value(std::string_view text) {
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  const std::size_t mark = std::min(text.find('e'), text.size());
  int exponent = mark < text.size() ? std::stoi(std::string(text.substr(mark + 1))) : 0;
  std::string digits(text.substr(0, mark));
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    exponent -= static_cast<int>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  // Boost reads a leading zero as the mark of an octal number.
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  const Rational magnitude = Rational(Integer(digits)) * power_of_ten(exponent);
  return negative ? Rational(-magnitude) : magnitude;
}

}  // namespace oracle
