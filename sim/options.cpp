#include "sim/options.h"

#include <charconv>
#include <utility>

namespace sim {

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

}  // namespace sim
