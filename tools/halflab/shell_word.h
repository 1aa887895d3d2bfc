#pragma once
/// Words of commands that a shell reads.

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace halflab {

/// The text as one word: in single quotes where it needs them.
inline std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "+,-./:=@_%";
  const auto is_plain = [&](unsigned char c) {
    return std::isalnum(c) || plain.find(static_cast<char>(c)) != plain.npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace halflab
