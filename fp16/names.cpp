#include "fp16/names.h"

#include <charconv>
#include <stdexcept>
#include <utility>

namespace names {
namespace {

[[noreturn]] void reject(std::string_view text, const std::string& what) {
  throw std::invalid_argument("'" + std::string(text) + "': " + what +
                              "; allowed: NAME or NAME:option=value:option=value");
}

double number_of(const Spec& spec, const std::string& key, const std::string& text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  double value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument("'" + spec.name + "': " + key + " = '" + text +
                                "' is not allowed; allowed: a number, true or false");
  }
  return value;
}

}  // namespace

std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string interval_text(const Interval& interval) {
  std::string text(1, interval.includes_lower ? '[' : '(');
  text += number_text(interval.lower);
  text += ", ";
  text += number_text(interval.upper);
  text += interval.includes_upper ? ']' : ')';
  return text;
}

OptionError::OptionError(std::string_view subject, std::string_view option, double value, std::string allowed)
    : std::invalid_argument(std::string(subject) + ": " + std::string(option) + " = " + number_text(value) +
                            " is not allowed; allowed: " + allowed),
      allowed_(std::move(allowed)) {}

Spec parse_spec(std::string_view text) {
  const std::size_t end_of_name = text.find(':');
  Spec spec{.name = std::string(text.substr(0, end_of_name)), .options = {}};
  for (std::size_t at = end_of_name; at != std::string_view::npos;) {
    const std::size_t next = text.find(':', at + 1);
    const std::string_view option =
        text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
    const std::size_t equals = option.find('=');
    if (equals == std::string_view::npos) reject(text, "option '" + std::string(option) + "' has no value");
    if (equals == 0) reject(text, "an option has no name");
    const std::string key(option.substr(0, equals));
    if (!spec.options.emplace(key, option.substr(equals + 1)).second)
      reject(text, "option '" + key + "' is given twice");
    at = next;
  }
  return spec;
}

GivenOptions numeric_options(const Spec& spec) {
  GivenOptions options;
  for (const auto& [key, text] : spec.options) options[key] = number_of(spec, key, text);
  return options;
}

}  // namespace names
