#pragma once
/// Text of verdicts: tables with a header, a rule of dashes under each column, one line a row; and shares.

#include <string>
#include <string_view>
#include <vector>

namespace experiments {

struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each of columns.size() cells
  std::vector<std::string> notes;              ///< below the table, each after a star

  /// Columns of numbers are aligned to the right, others to the left, two spaces apart; UTF-8 characters
  /// count as one. Below stand the notes.
  std::string text() const;
};

/// True for a text that begins as a number does: a digit after an optional sign, comparison or opening
/// parenthesis. An empty cell, a dash, nan and inf count as numbers too.
bool looks_numeric(std::string_view cell);

/// True when the column holds a number in every row.
bool is_numeric_column(const TextTable& table, std::size_t column);

/// Reads back what text() wrote; true, and the table filled, only if the text is such a table. Cells come
/// trimmed; all notes come as the table's own.
bool parse_text_table(std::string_view text, TextTable& table);

/// "12.3 %", with more digits for small shares: "0.012 %"; "0 %" only for an exact
/// zero; "-" for what is not finite.
std::string percent(double share);

}  // namespace experiments
