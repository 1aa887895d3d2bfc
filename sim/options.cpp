#include "sim/options.h"

#include <charconv>

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

}  // namespace sim
