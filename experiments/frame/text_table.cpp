#include "experiments/frame/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace experiments {
namespace {

constexpr std::string_view note_mark = "* ";

/// Every byte of UTF-8 but the continuations begins a character.
bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string padded(const std::string& text, std::size_t width, bool right_aligned) {
  const std::string padding(width - width_of(text), ' ');
  return right_aligned ? padding + text : text + padding;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The characters [from, from + count) of a line, fewer where it ends before.
std::string_view characters(std::string_view line, std::size_t from, std::size_t count) {
  const auto byte_of = [line](std::size_t character) {
    std::size_t byte = 0;
    for (; byte < line.size(); ++byte) {
      if (begins_character(line[byte]) && character-- == 0) break;
    }
    return byte;
  };
  const std::size_t begin = byte_of(from);
  return line.substr(begin, byte_of(from + count) - begin);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

bool looks_numeric(std::string_view cell) {
  constexpr std::array<std::string_view, 6> prefixes{"-", "+", "−", "<", ">", "("};
  constexpr std::array<std::string_view, 6> words{"", "-", "−", "–", "nan", "inf"};
  if (std::ranges::find(words, cell) != words.end()) return true;
  for (const std::string_view prefix : prefixes) {
    if (cell.starts_with(prefix)) cell = trimmed(cell.substr(prefix.size()));
  }
  return !cell.empty() && ((cell[0] >= '0' && cell[0] <= '9') || cell == "inf");
}

bool is_numeric_column(const TextTable& table, std::size_t column) {
  return !table.rows.empty() &&
         std::ranges::all_of(table.rows, [column](const auto& row) { return looks_numeric(row.at(column)); });
}

std::string TextTable::text() const {
  std::vector<std::string> lines(2 + rows.size());
  for (std::size_t column = 0; column < columns.size(); ++column) {
    std::size_t width = width_of(columns[column]);
    for (const std::vector<std::string>& row : rows) {
      if (row.size() != columns.size())
        throw std::logic_error("a text table's row has not one cell per column");
      width = std::max(width, width_of(row[column]));
    }
    const bool right_aligned = is_numeric_column(*this, column);
    const std::string gap = column == 0 ? "" : "  ";
    lines[0] += gap + padded(columns[column], width, right_aligned);
    lines[1] += gap + std::string(width, '-');
    for (std::size_t row = 0; row < rows.size(); ++row) {
      lines[2 + row] += gap + padded(rows[row][column], width, right_aligned);
    }
  }
  std::string text;
  for (const std::string& line : lines) text += without_trailing_spaces(line) + '\n';
  for (const std::string& note : notes) text += fmt::format("{}{}\n", note_mark, note);
  return text;
}

bool parse_text_table(std::string_view text, TextTable& table) {
  std::vector<std::string_view> lines = lines_of(text);
  if (lines.size() < 2 || !lines[1].starts_with('-') ||
      lines[1].find_first_not_of("- ") != std::string_view::npos) {
    return false;
  }
  table = {};
  for (; lines.back().starts_with(note_mark); lines.pop_back())
    table.notes.insert(table.notes.begin(), std::string(lines.back().substr(note_mark.size())));
  table.rows.resize(lines.size() - 2);
  for (std::size_t begin = 0; begin != std::string_view::npos;) {
    const std::size_t end = std::min(lines[1].find(' ', begin), lines[1].size());
    table.columns.emplace_back(trimmed(characters(lines[0], begin, end - begin)));
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      table.rows[row].emplace_back(trimmed(characters(lines[2 + row], begin, end - begin)));
    }
    begin = lines[1].find('-', end);
  }
  return true;
}

std::string percent(double share) {
  const double value = 100 * share;
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0 %";
  if (value < 1e-6) return fmt::format("{:.0e} %", value);
  const int first_digit = static_cast<int>(std::ceil(-std::log10(value)));
  return fmt::format("{:.{}f} %", value, value < 0.001 ? first_digit : value < 0.1 ? 3 : value < 1 ? 2 : 1);
}

}  // namespace experiments
