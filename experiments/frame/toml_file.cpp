#include "experiments/frame/toml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "experiments/frame/files.h"

namespace experiments {
namespace {

/// The place after the string that begins with the quotes at `begin`. An unfinished one reaches to the end of its
/// line or, in three quotes, of the text: toml++ stops there too.
std::size_t end_of_string(std::string_view toml, std::size_t begin) {
  const char quote = toml[begin];
  const bool escapes = quote == '"';
  const std::string three(3, quote);
  const bool is_multi_line = toml.substr(begin).starts_with(three);
  const std::string_view closing = std::string_view(three).substr(0, is_multi_line ? 3 : 1);
  for (std::size_t i = begin + closing.size(); i < toml.size(); ++i) {
    if (toml.substr(i).starts_with(closing)) {
      i += closing.size();
      // Before its three closing quotes such a string may itself end with one or two.
      for (int own = 0; is_multi_line && own < 2 && i < toml.size() && toml[i] == quote; ++own) ++i;
      return i;
    }
    if (toml[i] == '\n' && !is_multi_line) return i;
    if (toml[i] == '\\' && escapes) ++i;
  }
  return toml.size();
}

}  // namespace

std::optional<std::size_t> line_of_too_long_key(std::string_view toml) {
  int dots = 0;  // since what parts keys and values
  for (std::size_t i = 0; i < toml.size();) {
    const char character = toml[i];
    if (character == '"' || character == '\'') {
      i = end_of_string(toml, i);
      continue;
    }
    if (character == '#') {
      i = std::min(toml.find('\n', i), toml.size());
      continue;
    }
    if (character == '.') ++dots;
    if (dots >= most_key_parts)
      return static_cast<std::size_t>(std::ranges::count(toml.substr(0, i), '\n')) + 1;
    if (std::string_view("\n=,[]{}").find(character) != std::string_view::npos) dots = 0;
    ++i;
  }
  return std::nullopt;
}

toml::table read_toml_file(const std::string& file) {
  const std::string text = read_file(file, most_toml_bytes);
  if (const std::optional<std::size_t> line = line_of_too_long_key(text)) {
    throw std::runtime_error(
        fmt::format("{}:{}: a key of more than {} parts is not allowed", file, *line, most_key_parts));
  }
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw std::runtime_error(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
}

}  // namespace experiments
