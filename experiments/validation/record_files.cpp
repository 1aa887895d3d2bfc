#include "experiments/validation/record_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "experiments/frame/files.h"

namespace experiments::validation {
namespace {

/// The cells of the row that `text` begins with, which is taken off (RFC 4180, lines ended by LF).
std::vector<std::string> take_row(std::string_view& text) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  std::size_t at = 0;
  for (; at < text.size() && (quoted || text[at] != '\n'); ++at) {
    const char character = text[at];
    if (character == '"') {
      if (quoted && text.substr(at + 1).starts_with('"')) {
        cells.back() += '"';
        ++at;
      } else {
        quoted = !quoted;
      }
    } else if (character == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += character;
    }
  }
  text.remove_prefix(std::min(at + 1, text.size()));
  return cells;
}

}  // namespace

Json read_object(const std::filesystem::path& file) {
  Json object = Json::from_text(contents_of(file).value_or(""));
  return object.is_object() ? std::move(object) : Json::object();
}

std::optional<CsvTable> CsvTable::read(const std::filesystem::path& file) {
  const std::optional<std::string> contents = contents_of(file);
  if (!contents) return std::nullopt;
  std::string_view text = *contents;
  CsvTable table;
  table.file_ = file.string();
  table.columns_ = take_row(text);
  while (!text.empty()) {
    table.rows_.push_back(take_row(text));
    if (table.rows_.back().size() != table.columns_.size())
      throw std::runtime_error(fmt::format("{}: row {} has {} cells; must have {}", table.file_, table.size(),
                                           table.rows_.back().size(), table.columns_.size()));
  }
  return table;
}

const std::string& CsvTable::cell(std::size_t row, std::string_view column) const {
  const auto found = std::ranges::find(columns_, column);
  if (found == columns_.end()) throw std::runtime_error(fmt::format("{}: no column '{}'", file_, column));
  return rows_[row][static_cast<std::size_t>(found - columns_.begin())];
}

std::uint64_t CsvTable::number(std::size_t row, std::string_view column) const {
  return parsed<std::uint64_t>(row, column, "an unsigned integer");
}

double CsvTable::real(std::size_t row, std::string_view column) const {
  return parsed<double>(row, column, "a number");
}

template <typename Number>
Number CsvTable::parsed(std::size_t row, std::string_view column, std::string_view allowed) const {
  const std::string& text = cell(row, column);
  Number number = 0;
  const char* const end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, number);
      error != std::errc{} || rest != end)
    throw std::runtime_error(
        fmt::format("{}: row {}: {} '{}' must be {}", file_, row + 1, column, text, allowed));
  return number;
}

}  // namespace experiments::validation
