#include "experiments/pages/figures_in_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace experiments::pages {
namespace {

/// Keeps a figure and its unit on one line.
const std::string no_break_space = "\u00a0";

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Format {
  bool half_width = false, interval = false, percent = false, hundredths = false, exponent = false,
       logarithm = false, prefixed = false, mebibytes = false, sign = false;
};

Format parse_format(std::string_view text) {
  Format format;
  const std::pair<std::string_view, bool*> words[] = {
      {"±", &format.half_width},    {"[]", &format.interval},   {"%", &format.percent},
      {"x100", &format.hundredths}, {"2^", &format.exponent},   {"log2", &format.logarithm},
      {"si", &format.prefixed},     {"MiB", &format.mebibytes}, {"+", &format.sign}};
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) {
    const auto found = std::ranges::find(words, word, [](const auto& each) { return each.first; });
    if (found == std::end(words)) throw std::invalid_argument(fmt::format("unknown format '{}'", word));
    *found->second = true;
  }
  return format;
}

int decimal_exponent(double figure, int digits) {
  const std::string text = fmt::format("{:.{}e}", figure, digits - 1);
  return std::stoi(text.substr(text.find('e') + 1));
}

/// So many places behind the point, and no sign before a zero.
std::string fixed(double figure, int places, bool sign = false) {
  const std::string text =
      sign ? fmt::format("{:+.{}f}", figure, places) : fmt::format("{:.{}f}", figure, places);
  const bool is_zero = text.find_first_of("123456789") == std::string::npos;
  return is_zero && !std::isdigit(static_cast<unsigned char>(text.front())) ? text.substr(1) : text;
}

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

double as_number(const Json& value, std::string_view operand) {
  if (value.is_number()) return value.number();
  const std::string text = value.is_string() ? value.string() : "";
  if (text == "nan") return not_a_number;
  if (text == "inf" || text == "-inf") return std::copysign(HUGE_VAL, text[0] == '-' ? -1 : 1);
  throw std::invalid_argument(fmt::format("'{}' is {}, no number", operand, value.to_text()));
}

/// What `operand` names; a number is itself.
Json value_of(std::string_view operand, const Records& records) {
  if (const auto number = parse_number(operand)) return *number;
  const std::size_t colon = operand.find(':');
  if (colon == std::string_view::npos)
    throw std::invalid_argument(fmt::format("'{}' is neither a number nor RECORD:KEY", operand));
  return records.value(operand.substr(0, colon), operand.substr(colon + 1));
}

/// Where ` X ` stands for one of the characters.
std::size_t find_operator(std::string_view text, std::string_view characters) {
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    if (text[at - 1] == ' ' && text[at + 1] == ' ' && characters.find(text[at]) != std::string_view::npos)
      return at;
  }
  return std::string_view::npos;
}

Json evaluated(std::string_view term, const Records& records) {
  const std::size_t at = find_operator(term, "/-*");
  if (at == std::string_view::npos) return value_of(term, records);
  const auto number = [&](std::string_view operand) {
    return as_number(value_of(operand, records), operand);
  };
  const double first = number(term.substr(0, at - 1)), second = number(term.substr(at + 2));
  switch (term[at]) {
    case '/':
      return first / second;
    case '-':
      return first - second;
    default:
      return first * second;
  }
}

struct Interval {
  double lower, upper;
  double half_width() const { return (upper - lower) / 2; }
};

Interval interval_of(std::string_view operand, double figure, const Records& records) {
  const auto beside = [&](std::string_view suffix) {
    const std::string key = fmt::format("{}{}", operand, suffix);
    return as_number(value_of(key, records), key);
  };
  try {
    return {beside("_lower"), beside("_upper")};
  } catch (const std::invalid_argument&) {
    const double half_width = beside("_half_width");
    return {figure - half_width, figure + half_width};
  }
}

/// So many places that the half width has two digits.
int places_of(double half_width) {
  return half_width > 0 ? std::max(0, 1 - decimal_exponent(half_width, 2)) : 2;
}

std::string with_half_width(double figure, double half_width) {
  if (!std::isfinite(figure) || !std::isfinite(half_width)) return three_digits(figure);
  if (half_width == 0) return three_digits(figure) + " ± 0";
  constexpr int most_digits = 4;
  const int places =
      std::min(places_of(half_width), std::max(0, most_digits - 1 - decimal_exponent(figure, most_digits)));
  std::string width = fixed(half_width, places);
  const bool is_less_than_a_place = width.find_first_of("123456789") == std::string::npos;
  if (is_less_than_a_place) width.back() = '1';
  return fmt::format("{} ± {}{}", fixed(figure, places), is_less_than_a_place ? "< " : "", width);
}

/// Differences in per cent have one place behind the point, so that it can be seen whose interval holds 0,
/// or two.
std::string with_interval(double figure, const Interval& interval, bool in_per_cent) {
  if (!std::isfinite(figure)) return three_digits(figure);
  const int places = std::clamp(places_of(interval.half_width()), in_per_cent ? 1 : 0, in_per_cent ? 2 : 4);
  if (!std::isfinite(interval.half_width())) return fixed(figure, places, true);
  return fmt::format("{} [{}, {}]", fixed(figure, places, true), fixed(interval.lower, places),
                     fixed(interval.upper, places));
}

std::string with_prefix(double figure) {
  constexpr std::array<std::string_view, 5> prefixes{"", " k", " M", " G", " T"};
  std::size_t thousands = 0;
  // 999.6 has three digits that are a thousand.
  while (thousands + 1 < prefixes.size() && decimal_exponent(figure, 3) >= 3) figure /= 1000, ++thousands;
  return three_digits(figure) + std::string(prefixes[thousands]);
}

std::string shown(const Json& value, std::string_view term, const Format& format, const Records& records) {
  const bool is_plain_text = value.is_string() && value != "nan" && value != "inf" && value != "-inf";
  if (is_plain_text) return value.string();
  double factor = format.percent || format.hundredths ? 100 : 1;
  if (format.mebibytes) factor = 1.0 / (1 << 20);
  double figure = as_number(value, term);
  if (format.logarithm) figure = std::log2(figure);
  std::string text;
  if (format.half_width || format.interval) {
    const Interval own = interval_of(term, figure, records);
    const Interval scaled{factor * own.lower, factor * own.upper};
    if (format.half_width && format.hundredths && (scaled.lower < 0 || scaled.upper > 100))
      throw std::invalid_argument("the interval of a share leaves 0 to 100: give the deviation, KEY_std");
    text = format.interval ? with_interval(factor * figure, scaled, factor == 100)
                           : with_half_width(factor * figure, scaled.half_width());
  } else if (format.prefixed) {
    text = with_prefix(figure);
  } else if (value.is_integer() && factor == 1 && !format.logarithm) {
    text = value.to_text();
  } else {
    text = three_digits(factor * figure);
  }
  if (format.sign && factor * figure > 0) text = fmt::format("+{}", text);
  if (format.exponent) text = fmt::format("2^{}", text);
  return text + (format.percent ? no_break_space + "%" : format.mebibytes ? no_break_space + "MiB" : "");
}

std::string filled_placeholder(std::string_view placeholder, const Records& records) {
  const std::size_t bar = std::min(placeholder.find('|'), placeholder.size());
  const std::string_view term = placeholder.substr(0, bar);
  try {
    const Format format = parse_format(bar < placeholder.size() ? placeholder.substr(bar + 1) : "");
    return shown(evaluated(term, records), term, format, records);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{{{}}}: {}", placeholder, error.what()));
  }
}

bool is_ordered(double left, std::string_view comparison, double right) {
  if (comparison == ">") return left > right;
  if (comparison == "<") return left < right;
  if (comparison == ">=") return left >= right;
  if (comparison == "<=") return left <= right;
  return left == right;
}

}  // namespace

std::string three_digits(double figure) {
  if (std::isnan(figure)) return "NaN";
  if (std::isinf(figure)) return figure > 0 ? "infinity" : "-infinity";
  if (figure == 0) return "0";
  constexpr int digits = 3, smallest_without_a_power = -4;
  const std::string rounded = fmt::format("{:.{}e}", figure, digits - 1);
  const int exponent = decimal_exponent(figure, digits);
  if (exponent < smallest_without_a_power)
    return fmt::format("{} x 10^{}", rounded.substr(0, rounded.find('e')), exponent);
  const double value = std::stod(rounded);
  if (value == figure && exponent < 15) return fmt::format("{}", value);  // it has no more digits
  return fixed(value, std::max(0, digits - 1 - exponent));
}

std::string filled(std::string_view text, const Records& records) {
  std::string result;
  while (!text.empty()) {
    const std::size_t opening = std::min(text.find('{'), text.size());
    result += text.substr(0, opening);
    text.remove_prefix(opening);
    if (text.empty()) break;
    const std::size_t closing = text.find('}');
    if (closing == std::string_view::npos)
      throw std::invalid_argument(fmt::format("'{}' lacks a closing brace", text.substr(0, 40)));
    result += filled_placeholder(text.substr(1, closing - 1), records);
    text.remove_prefix(closing + 1);
  }
  return result;
}

bool holds(std::string_view condition, const Records& records) {
  for (const std::string_view comparison : {">=", "<=", "==", ">", "<"}) {
    const std::string around = fmt::format(" {} ", comparison);
    const std::size_t at = condition.find(around);
    if (at == std::string_view::npos) continue;
    const std::string_view left = condition.substr(0, at), right = condition.substr(at + around.size());
    try {
      const Json first = evaluated(left, records);
      const bool is_text = !parse_number(right) && right.find(':') == std::string_view::npos;
      if (is_text && comparison == "==") return first == std::string(right);
      return is_ordered(as_number(first, left), comparison, as_number(evaluated(right, records), right));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("'{}': {}", condition, error.what()));
    }
  }
  throw std::invalid_argument(fmt::format("'{}' compares nothing; must have one of > < >= <= ==", condition));
}

}  // namespace experiments::pages
