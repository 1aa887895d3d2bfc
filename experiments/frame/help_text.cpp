#include "experiments/frame/help_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace experiments {
namespace {

/// The text in lines, those after the first after so many spaces.
std::string indented(std::string_view text, std::size_t spaces) {
  std::string result;
  for (const char c : wrapped(text, help_width - spaces)) {
    result += c;
    if (c == '\n') result.append(spaces, ' ');
  }
  return result;
}

std::string in_brackets(const std::string& when) {
  return when.empty() ? "" : fmt::format(" [{}]", when);
}

std::string table_text(const TableNote& table) {
  std::string columns;
  for (const ColumnNote& column : table.columns) {
    columns +=
        fmt::format("{}{}{}{}", columns.empty() ? "" : ", ", column.name,
                    column.unit.empty() ? "" : fmt::format(" ({})", column.unit), in_brackets(column.when));
  }
  return fmt::format("  {}.csv, a row for {}{}\n      {}\n", table.name, table.rows, in_brackets(table.when),
                     indented(columns, 6));
}

/// Meanings stand beside their names; below names that are longer than most.
std::string keys_text(const std::vector<SummaryKey>& keys) {
  constexpr std::size_t widest = 36;
  std::size_t width = 0;
  for (const SummaryKey& key : keys) {
    if (key.name.size() <= widest) width = std::max(width, key.name.size());
  }
  std::string text;
  for (const SummaryKey& key : keys) {
    const std::string meaning = indented(key.meaning + in_brackets(key.when), width + 4);
    text += key.name.size() <= width ? fmt::format("  {:<{}}  {}\n", key.name, width, meaning)
                                     : fmt::format("  {}\n{:{}}{}\n", key.name, "", width + 4, meaning);
  }
  return text;
}

/// Where what does not fit goes on: below the last column of a line with two or more spaces between columns, else below
/// its first word.
std::size_t hanging_indent(std::string_view line) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  return gap == std::string_view::npos ? first : std::min(line.find_first_not_of(' ', gap), line.size());
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t width) {
  std::string result;
  for (const auto& line : std::views::split(text, '\n')) {
    std::string rest(line.begin(), line.end());
    const std::size_t indent = hanging_indent(rest);
    while (rest.size() > width) {
      std::size_t end = rest.rfind(' ', width);
      if (end == std::string::npos || end < indent) end = rest.find(' ', width);
      if (end == std::string::npos) break;
      result += rest.substr(0, rest.find_last_not_of(' ', end) + 1) + '\n';
      rest = std::string(indent, ' ') + rest.substr(std::min(rest.find_first_not_of(' ', end), rest.size()));
    }
    result += rest.substr(0, rest.find_last_not_of(' ') + 1) + '\n';
  }
  result.pop_back();
  return result;
}

std::string text_of(const Outputs& outputs) {
  std::string text;
  const auto begin_part = [&](std::string_view heading) {
    if (!text.empty()) text += '\n';
    text += heading;
  };
  if (!outputs.words.empty()) text += wrapped(outputs.words, help_width);
  if (!outputs.tables.empty()) begin_part("Tables:\n");
  for (const TableNote& table : outputs.tables) text += table_text(table);
  if (!outputs.summary_keys.empty()) begin_part("Keys of summary.json:\n");
  return text + keys_text(outputs.summary_keys);
}

}  // namespace experiments
