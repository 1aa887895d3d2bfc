#include "tools/halflab/show/exact_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "fp16/parse.h"

namespace halflab::show {
namespace {

void trim(Limbs& limbs) {
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
}

Limbs limbs_of(std::uint64_t value) {
  Limbs limbs{static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
  trim(limbs);
  return limbs;
}

int width_of(const Limbs& limbs) {
  return limbs.empty()
             ? 0
             : 32 * static_cast<int>(limbs.size() - 1) + fp16::bit_width(std::uint64_t{limbs.back()});
}

bool bit_of(const Limbs& limbs, int bit) {
  const auto limb = static_cast<std::size_t>(bit / 32);
  return bit >= 0 && limb < limbs.size() && (limbs[limb] >> bit % 32 & 1) != 0;
}

Limbs shifted_right(const Limbs& limbs, int bits) {
  Limbs result(limbs.begin() + std::min(bits / 32, static_cast<int>(limbs.size())), limbs.end());
  for (std::size_t i = 0; i < result.size() && bits % 32 != 0; ++i) {
    const std::uint64_t above = i + 1 < result.size() ? result[i + 1] : 0;
    result[i] = static_cast<std::uint32_t>((above << 32 | result[i]) >> bits % 32);
  }
  trim(result);
  return result;
}

Limbs shifted_left(const Limbs& limbs, int bits) {
  Limbs result(static_cast<std::size_t>(bits / 32), 0);
  std::uint64_t carry = 0;
  for (const std::uint32_t limb : limbs) {
    carry |= std::uint64_t{limb} << bits % 32;
    result.push_back(static_cast<std::uint32_t>(carry));
    carry >>= 32;
  }
  result.push_back(static_cast<std::uint32_t>(carry));
  trim(result);
  return result;
}

bool is_below(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::ranges::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

Limbs sum(const Limbs& a, const Limbs& b) {
  Limbs result;
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
    carry += std::uint64_t{i < a.size() ? a[i] : 0} + (i < b.size() ? b[i] : 0);
    result.push_back(static_cast<std::uint32_t>(carry));
    carry >>= 32;
  }
  return result;
}

/// a is not below b.
Limbs difference(Limbs a, const Limbs& b) {
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    borrow += std::int64_t{a[i]} - (i < b.size() ? b[i] : 0);
    a[i] = static_cast<std::uint32_t>(borrow);
    borrow >>= 32;
  }
  trim(a);
  return a;
}

Limbs product(const Limbs& a, const Limbs& b) {
  Limbs result(a.size() + b.size(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t k = 0; k < b.size(); ++k) {
      carry += std::uint64_t{a[i]} * b[k] + result[i + k];
      result[i + k] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    result[i + b.size()] = static_cast<std::uint32_t>(carry);
  }
  trim(result);
  return result;
}

Limbs power(std::uint32_t base, int exponent) {
  Limbs result{1}, square{base};
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0) result = product(result, square);
    if (exponent > 1) square = product(square, square);
  }
  return result;
}

/// What remains of `limbs` divided by a small number, which it is from then on.
std::uint32_t divide(Limbs& limbs, std::uint32_t divisor) {
  std::uint64_t remainder = 0;
  for (std::size_t i = limbs.size(); i-- > 0;) {
    remainder = remainder << 32 | limbs[i];
    limbs[i] = static_cast<std::uint32_t>(remainder / divisor);
    remainder %= divisor;
  }
  trim(limbs);
  return static_cast<std::uint32_t>(remainder);
}

struct Quotient {
  Limbs whole;
  bool has_remainder;
};

/// Digit by digit, of 32 bits each by a short divisor and of one bit by others.
Quotient divide(const Limbs& dividend, const Limbs& divisor) {
  if (divisor.size() == 1) {
    Quotient result{dividend, false};
    result.has_remainder = divide(result.whole, divisor[0]) != 0;
    return result;
  }
  Limbs whole(dividend.size(), 0), remainder;
  for (int bit = width_of(dividend) - 1; bit >= 0; --bit) {
    remainder = shifted_left(remainder, 1);
    if (bit_of(dividend, bit)) remainder = sum(remainder, {1});
    if (is_below(remainder, divisor)) continue;
    remainder = difference(std::move(remainder), divisor);
    whole[static_cast<std::size_t>(bit / 32)] |= std::uint32_t{1} << bit % 32;
  }
  trim(whole);
  return {std::move(whole), !remainder.empty()};
}

std::string decimal_digits(Limbs limbs) {
  constexpr std::uint32_t base = 1'000'000'000;
  std::string digits;
  while (!limbs.empty()) {
    const std::uint32_t nine = divide(limbs, base);
    digits = (limbs.empty() ? fmt::format("{}", nine) : fmt::format("{:09}", nine)) + digits;
  }
  return digits;
}

Limbs number_from(std::string_view digits, std::uint32_t base) {
  Limbs limbs;
  for (const char digit : digits) {
    const int value = digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
    limbs = sum(product(limbs, {base}), limbs_of(static_cast<std::uint64_t>(value)));
  }
  return limbs;
}

/// "0.00123" of digits * 10^-places.
std::string positional(std::string digits, std::size_t places) {
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  std::string fraction = digits.substr(digits.size() - places);
  digits.erase(digits.size() - places);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return fraction.empty() ? digits : digits + "." + fraction;
}

/// Adds one to the last digit; "999" becomes "1000".
void increment(std::string& digits) {
  const std::size_t last = digits.find_last_not_of('9');
  if (last == std::string::npos) {
    digits.assign(digits.size() + 1, '0');
    digits[0] = '1';
    return;
  }
  ++digits[last];
  std::fill(digits.begin() + static_cast<std::ptrdiff_t>(last) + 1, digits.end(), '0');
}

/// "0.1", or "1.5e-10" where the number is small or large: digits * 10^-places to 24 significant digits.
std::string about(std::string digits, std::size_t places) {
  constexpr std::size_t kept = 24;
  int leading = static_cast<int>(digits.size()) - 1 - static_cast<int>(places);
  if (digits.size() > kept) {
    const bool is_up = digits[kept] >= '5';
    digits.resize(kept);
    if (is_up) increment(digits);
    if (digits.size() > kept) ++leading;
  }
  digits.erase(digits.find_last_not_of('0') + 1);
  if (leading < -6 || leading > 24)
    return fmt::format("{}{}{}e{:+03}", digits[0], digits.size() > 1 ? "." : "", digits.substr(1), leading);
  const int past_point = static_cast<int>(digits.size()) - 1 - leading;
  if (past_point < 0) digits.append(static_cast<std::size_t>(-past_point), '0');
  return positional(digits, static_cast<std::size_t>(std::max(past_point, 0)));
}

/// Text of a numeral: its digits without the point, and the power of the base behind them.
struct Digits {
  std::string digits;
  int exponent;
};

/// Errors quote `whole`, of which `text` is the part without sign and prefix.
Digits digits_of(std::string_view text, std::string_view marks, int digits_weight, std::string_view whole) {
  constexpr int largest = ExactNumber::largest_read;
  const std::string_view mantissa = text.substr(0, text.find_first_of(marks));
  std::int64_t exponent = 0;
  if (mantissa.size() < text.size()) {
    fp16::detail::Cursor cursor(text.substr(mantissa.size()));
    exponent = fp16::detail::take_exponent(cursor, marks[0]);
  }
  Digits result{};
  bool behind_point = false;
  for (const char digit : mantissa) {
    if (digit == '.') {
      behind_point = true;
      continue;
    }
    result.digits += digit;
    exponent -= behind_point ? digits_weight : 0;
  }
  if (std::abs(exponent) > largest || mantissa.size() > largest)
    throw std::invalid_argument(
        fmt::format("'{:.40}' is too long or too far from 1; allowed: {} digits and exponents up to {}",
                    whole, largest, largest));
  result.exponent = static_cast<int>(exponent);
  return result;
}

}  // namespace

ExactNumber::ExactNumber(const fp16::Unpacked<std::uint64_t>& number)
    : negative_(number.negative), magnitude_(limbs_of(number.significand)), exponent_(number.exponent) {}

ExactNumber ExactNumber::from_text(std::string_view text) {
  const std::string_view whole = text;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with("0x") || text.starts_with("0X")) {
    const Digits hexadecimal = digits_of(text.substr(2), "pP", 4, whole);
    return {negative, number_from(hexadecimal.digits, 16), hexadecimal.exponent};
  }
  const Digits decimal = digits_of(text, "eE", 1, whole);
  const ExactNumber digits(negative, number_from(decimal.digits, 10), 0);
  const ExactNumber scale(false, power(10, std::abs(decimal.exponent)), 0);
  return decimal.exponent < 0 ? digits / scale : digits * scale;
}

int ExactNumber::leading_exponent() const {
  return exponent_ + width_of(magnitude_) - 1;
}

bool ExactNumber::bit(int exponent) const {
  return bit_of(magnitude_, exponent - exponent_);
}

bool ExactNumber::has_bits_below(int exponent) const {
  if (has_more_) return true;
  for (int place = std::min(exponent - exponent_, width_of(magnitude_)) - 1; place >= 0; --place) {
    if (bit_of(magnitude_, place)) return true;
  }
  return false;
}

ExactNumber ExactNumber::cut_below(int exponent) const {
  const int bits = std::max(0, exponent - exponent_);
  return {negative_, shifted_right(magnitude_, bits), exponent_ + bits};
}

ExactNumber ExactNumber::cut_behind(int count, bool has_more) const {
  const int bits = width_of(magnitude_) - count;
  Limbs leading = bits < 0 ? shifted_left(magnitude_, -bits) : shifted_right(magnitude_, bits);
  return {negative_, std::move(leading), exponent_ + bits, has_more};
}

fp16::Unpacked<fp16::uint128> ExactNumber::leading() const {
  constexpr int digits = 126;
  if (is_zero()) return {.negative = negative_, .exponent = 0, .significand = 0};
  const int last = leading_exponent() - digits + 1;
  fp16::uint128 significand = 0;
  for (int exponent = leading_exponent(); exponent >= last; --exponent)
    significand = significand << 1 | static_cast<unsigned>(bit(exponent));
  return {.negative = negative_,
          .exponent = last,
          .significand = significand | static_cast<unsigned>(has_bits_below(last))};
}

std::uint64_t ExactNumber::fraction_below(int exponent) const {
  std::uint64_t fraction = 0;
  for (int place = 1; place <= 64; ++place)
    fraction = fraction << 1 | static_cast<unsigned>(bit(exponent - place));
  return fraction;
}

std::string ExactNumber::decimal(std::size_t most) const {
  const std::string sign = negative_ ? "-" : "";
  if (is_zero()) return sign + "0";
  const int places = std::max(-exponent_, 0);
  const Limbs whole = product(shifted_left(magnitude_, std::max(exponent_, 0)), power(5, places));
  const std::string digits = decimal_digits(whole);
  const std::string all = positional(digits, static_cast<std::size_t>(places));
  if (!has_more_ && all.size() <= most) return sign + all;
  return "about " + sign + about(digits, static_cast<std::size_t>(places));
}

std::string ExactNumber::hexadecimal() const {
  constexpr std::size_t most = 40;
  const std::string sign = negative_ ? "-" : "";
  if (is_zero()) return sign + "0x0p+0";
  std::string digits;
  int place = leading_exponent();
  while (place > exponent_ && digits.size() < most) {
    unsigned digit = 0;
    for (int i = 0; i < 4; ++i) digit = digit << 1 | static_cast<unsigned>(bit(--place));
    digits += fmt::format("{:x}", digit);
  }
  const bool goes_on = has_bits_below(place);
  if (!goes_on) digits.erase(digits.find_last_not_of('0') + 1);
  return fmt::format("{}0x1{}{}{}p{:+}", sign, digits.empty() ? "" : ".", digits, goes_on ? "..." : "",
                     leading_exponent());
}

std::string ExactNumber::binary_down_to(int last) const {
  std::string digits;
  const int first = std::max(leading_exponent(), last);
  for (int place = first; place >= last; --place) {
    digits += bit(place) ? '1' : '0';
    if (place == first && place > last) digits += '.';
  }
  return digits;
}

ExactNumber operator+(const ExactNumber& a, const ExactNumber& b) {
  const int exponent = std::min(a.exponent_, b.exponent_);
  const Limbs x = shifted_left(a.magnitude_, a.exponent_ - exponent),
              y = shifted_left(b.magnitude_, b.exponent_ - exponent);
  if (a.negative_ == b.negative_) return {a.negative_, sum(x, y), exponent};
  return is_below(x, y) ? ExactNumber(b.negative_, difference(y, x), exponent)
                        : ExactNumber(a.negative_, difference(x, y), exponent);
}

ExactNumber operator*(const ExactNumber& a, const ExactNumber& b) {
  return {a.negative_ != b.negative_, product(a.magnitude_, b.magnitude_), a.exponent_ + b.exponent_};
}

ExactNumber quotient(const ExactNumber& a, const ExactNumber& b, int bits) {
  const int shift = std::max(0, bits + width_of(b.magnitude_) - width_of(a.magnitude_));
  Quotient result = divide(shifted_left(a.magnitude_, shift), b.magnitude_);
  return {a.negative_ != b.negative_, std::move(result.whole), a.exponent_ - b.exponent_ - shift,
          result.has_remainder};
}

ExactNumber square_root(const ExactNumber& a, int bits) {
  int shift = std::max(0, 2 * bits - width_of(a.magnitude_));
  if ((a.exponent_ - shift) % 2 != 0) ++shift;
  const Limbs radicand = shifted_left(a.magnitude_, shift);
  Limbs root, square;
  for (int bit = (width_of(radicand) + 1) / 2 - 1; bit >= 0; --bit) {
    const Limbs trial = sum(root, shifted_left({1}, bit));
    Limbs trial_square = product(trial, trial);
    if (is_below(radicand, trial_square)) continue;
    root = trial;
    square = std::move(trial_square);
  }
  return {false, root, (a.exponent_ - shift) / 2, is_below(square, radicand)};
}

/// In [1, 2); not zero.
double ExactNumber::leading_fraction() const {
  return std::ldexp(static_cast<double>(fraction_below(leading_exponent())), -64) + 1;
}

double ratio(const ExactNumber& a, const ExactNumber& b) {
  if (a.is_zero()) return 0;
  const double magnitude =
      std::ldexp(a.leading_fraction() / b.leading_fraction(), a.leading_exponent() - b.leading_exponent());
  return a.negative_ != b.negative_ ? -magnitude : magnitude;
}

}  // namespace halflab::show
