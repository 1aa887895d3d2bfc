#include <fmt/format.h>

#include <array>

#include "tools/halflab/show/report.h"

namespace halflab::show {
namespace {

/// Sign magenta, exponent green, significand cyan: readable on black and on white.
constexpr std::string_view sign_color = "\x1b[1;35m", exponent_color = "\x1b[1;32m",
                           significand_color = "\x1b[1;36m", no_color = "\x1b[0m";

std::string colored_fields(const fp16::Format& format, const std::string& fields) {
  std::vector<std::string_view> colors{exponent_color};
  if (format.is_signed()) colors.insert(colors.begin(), sign_color);
  if (format.trailing_bits() > 0) colors.push_back(significand_color);
  std::string text;
  std::size_t begin = 0;
  for (const std::string_view color : colors) {
    const std::size_t end = std::min(fields.find(' ', begin), fields.size());
    text +=
        fmt::format("{}{}{}{}", begin == 0 ? "" : " ", color, fields.substr(begin, end - begin), no_color);
    begin = end + 1;
  }
  return text;
}

bool is_blank(std::string_view text, std::size_t place) {
  return place >= text.size() || text[place] == ' ' || text[place] == '\n';
}

}  // namespace

std::string colored(std::string_view text, const fp16::Format& format,
                    const std::vector<std::string>& fields) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::string* found = nullptr;
    if (i == 0 || is_blank(text, i - 1)) {
      for (const std::string& candidate : fields)
        if (text.substr(i).starts_with(candidate) && is_blank(text, i + candidate.size())) found = &candidate;
    }
    if (found != nullptr) {
      result += colored_fields(format, *found);
      i += found->size();
    } else {
      result += text[i++];
    }
  }
  return result;
}

}  // namespace halflab::show
