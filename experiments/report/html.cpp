#include "experiments/report/html.h"

#include <fmt/format.h>

#include <cctype>
#include <stdexcept>

namespace experiments::report {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    switch (character) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += character;
    }
  }
  return result;
}

std::string typeset(std::string_view text) {
  const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
  std::string result;
  for (std::size_t caret = text.find('^'); caret != std::string_view::npos; caret = text.find('^')) {
    std::size_t end = caret + 1;
    if (end < text.size() && text[end] == '-') ++end;
    const std::size_t digits = end;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
      for (++end; end < text.size() && is_digit(text[end]);) ++end;
    }
    const bool is_power = caret > 0 && is_digit(text[caret - 1]) && end > digits;
    result += escaped(text.substr(0, is_power ? caret : end));
    if (is_power) result += fmt::format("<sup>{}</sup>", text.substr(caret + 1, end - caret - 1));
    text.remove_prefix(end);
  }
  return result + escaped(text);
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kept = "-._~/ ()=;,";
  std::string result;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool is_plain = std::isalnum(byte) != 0 || kept.find(character) != std::string_view::npos;
    result += is_plain ? std::string(1, character) : fmt::format("%{:02X}", byte);
  }
  return result;
}

std::string image_of(std::string_view svg, std::string_view label) {
  const std::size_t begin = svg.find("<svg");
  const std::size_t end = svg.rfind("</svg>");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
    throw std::runtime_error(fmt::format("figure '{}': the file has no <svg> element", label));
  return fmt::format("<img src=\"data:image/svg+xml,{}\" alt=\"{}\">",
                     percent_encoded(svg.substr(begin, end + 6 - begin)), escaped(label));
}

}  // namespace experiments::report
