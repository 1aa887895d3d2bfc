#include "experiments/frame/toml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

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

bool is_beyond_ascii(char character) {
  return static_cast<unsigned char>(character) >= 0x80;
}

/// Whether a backslash of a string, given with its quotes, is followed by such a letter, spaces and ends of lines aside.
bool has_letter_beyond_ascii_after_backslash(std::string_view string) {
  if (string.front() != '"') return false;
  for (std::size_t i = 1; i + 1 < string.size(); ++i) {
    if (string[i] != '\\') continue;
    const std::size_t next = string.find_first_not_of(" \t\r\n", i + 1);
    if (next != std::string_view::npos && is_beyond_ascii(string[next])) return true;
    ++i;
  }
  return false;
}

bool is_letter_or_digit(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9');
}

/// Whether the name of a table begins as a key may, or ends: toml++ itself refuses an empty one. `begin` is its bracket's place.
bool begins_as_name(std::string_view toml, std::size_t begin) {
  std::size_t i = begin + 1;
  if (i < toml.size() && toml[i] == '[') ++i;
  i = std::min(toml.find_first_not_of(" \t", i), toml.size());
  constexpr std::string_view others = "_-\"']";
  return i == toml.size() || is_letter_or_digit(toml[i]) || others.find(toml[i]) != std::string_view::npos;
}

/// Where a scan of a text is: in a key or a value, at the beginning of a line, within brackets.
class Scan {
 public:
  explicit Scan(std::string_view toml) : toml_(toml) {}

  /// Goes on by a character that is no part of a string or a comment. Gives what is wrong with it.
  std::optional<std::string> step(std::size_t i) {
    const char character = toml_[i];
    if (std::string_view("\n\r\v\f").find(character) != std::string_view::npos) {
      is_at_line_start_ = true;
      is_in_name_ = false;
    } else if (character == '[' && is_at_line_start_ && open_.empty()) {
      is_in_name_ = true;
      if (!begins_as_name(toml_, i))
        return "a table's name must begin with a letter, a digit, _, - or a quote";
    }
    if ((character == '[' || character == '{') && !is_at_line_start_ &&
        std::string_view(" \t=[{,").find(toml_[i - 1]) == std::string_view::npos)
      return "a bracket within a word is not allowed";
    if (character == '=' && is_in_value_ && !is_in_name_) return "an = within a value is not allowed";
    if (is_beyond_ascii(character))
      return "a letter beyond ASCII is not allowed outside of strings and comments";
    if (character > ' ') {
      is_at_line_start_ = false;
      last_ = character;
    }
    if (!is_in_name_) {
      count_brackets(character);
      tell_values_from_keys(character);
    }
    return count_dots(character);
  }
  void pass_string() {
    is_at_line_start_ = false;
    last_ = '"';
  }
  bool is_in_value() const { return is_in_value_; }
  /// Whether what stands before, blanks and comments aside, lets a value begin here.
  bool may_begin_value() const { return std::string_view("=[{,").find(last_) != std::string_view::npos; }

 private:
  void count_brackets(char character) {
    if (character == '[' || character == '{') open_ += character;
    if ((character == ']' || character == '}') && !open_.empty()) open_.pop_back();
  }
  void tell_values_from_keys(char character) {
    const bool is_in_table = !open_.empty() && open_.back() == '{';
    if (character == '=' || character == '[') is_in_value_ = true;
    if (character == '{' || (character == ',' && is_in_table) || (character == '\n' && open_.empty()))
      is_in_value_ = false;
  }
  std::optional<std::string> count_dots(char character) {
    if (character == '.' && ++dots_ >= most_key_parts)
      return fmt::format("a key of more than {} parts is not allowed", most_key_parts);
    if (std::string_view("\n=,[]{}").find(character) != std::string_view::npos) dots_ = 0;
    return std::nullopt;
  }

  std::string_view toml_;
  int dots_ = 0;      ///< since what parts keys and values
  char last_ = '\n';  ///< that was no blank and no comment
  std::string open_;  ///< brackets of arrays and inline tables
  bool is_at_line_start_ = true;
  bool is_in_name_ = false;   ///< of a table, between brackets
  bool is_in_value_ = false;  ///< else in a key
};

}  // namespace

std::optional<TomlFault> fault_before_parsing(std::string_view toml) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  Scan scan(toml);
  const std::size_t begin = toml.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  for (std::size_t i = begin; i < toml.size();) {
    const auto fault = [&](std::string problem) {
      return TomlFault{static_cast<std::size_t>(std::ranges::count(toml.substr(0, i), '\n')) + 1,
                       std::move(problem)};
    };
    if (toml[i] == '"' || toml[i] == '\'') {
      constexpr std::string_view before_strings = " \t\r\n=[{,.";
      const char before = i > begin ? toml[i - 1] : '\n';
      if (before_strings.find(before) == std::string_view::npos || (before == '.' && scan.is_in_value()))
        return fault("a quote within a word is not allowed outside of strings");
      if (scan.is_in_value() && !scan.may_begin_value())
        return fault("a quote behind a value is not allowed");
      scan.pass_string();
      const std::size_t end = end_of_string(toml, i);
      if (has_letter_beyond_ascii_after_backslash(toml.substr(i, end - i)))
        return fault("a letter beyond ASCII after a backslash is not allowed");
      i = end;
    } else if (toml[i] == '#') {
      i = std::min(toml.find('\n', i), toml.size());
    } else {
      if (std::optional<std::string> problem = scan.step(i)) return fault(*std::move(problem));
      ++i;
    }
  }
  return std::nullopt;
}

toml::table parse_toml(std::string_view text, const std::string& file) {
  if (const std::optional<TomlFault> fault = fault_before_parsing(text))
    throw std::runtime_error(fmt::format("{}:{}: {}", file, fault->line, fault->problem));
  try {
    return toml::parse(text, std::string_view(file));
  } catch (const toml::parse_error& error) {
    throw std::runtime_error(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
}

toml::table read_toml_file(const std::string& file) {
  return parse_toml(read_file(file, most_toml_bytes), file);
}

}  // namespace experiments
