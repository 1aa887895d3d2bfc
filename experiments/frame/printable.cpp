#include "experiments/frame/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace experiments {
namespace {

constexpr std::size_t longest_line = 2000;
constexpr std::string_view omission = " [...] ";

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/// Bytes of the character that `text` begins with; 0 where it is no UTF-8 or a control character.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf5   ? 0
                             : first >= 0xf0 ? 4
                             : first >= 0xe0 ? 3
                             : first >= 0xc2 ? 2
                                             : 0;
  const bool is_whole = length <= text.size() && std::ranges::all_of(text.substr(1, length - 1), continues);
  const bool is_control = first == 0xc2 && is_whole && static_cast<unsigned char>(text[1]) < 0xa0;
  return length != 0 && is_whole && !is_control ? length : 0;
}

/// Never within a character.
std::string_view first_bytes(std::string_view text, std::size_t count) {
  while (count > 0 && continues(text[count])) --count;
  return text.substr(0, count);
}

std::string_view last_bytes(std::string_view text, std::size_t count) {
  std::size_t begin = text.size() - count;
  while (begin < text.size() && continues(text[begin])) ++begin;
  return text.substr(begin);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = text[0] == '\n' ? 1 : character_length(text);
    if (length > 0) {
      result += text.substr(0, length);
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace(line, '\n', ' ');
  if (line.size() <= longest_line) return line;
  constexpr std::size_t kept = (longest_line - omission.size()) / 2;
  return fmt::format("{}{}{}", first_bytes(line, kept), omission, last_bytes(line, kept));
}

std::string counted(std::uint64_t count, std::string_view noun) {
  const bool hisses =
      noun.ends_with("s") || noun.ends_with("x") || noun.ends_with("ch") || noun.ends_with("sh");
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : hisses ? "es" : "s");
}

}  // namespace experiments
