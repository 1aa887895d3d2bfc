#pragma once
/// What a program writes, as its --help-outputs tells it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace experiments {

/// A column of a table. In its name, and in that of a key, <...> stands for what a run puts there.
struct ColumnNote {
  std::string name;
  std::string unit;  ///< "log2", "bytes", "1" for ratios; empty for names and other texts
  std::string when;  ///< what brings it, such as an option; empty where every run has it
};

/// A CSV file.
struct TableNote {
  std::string name;  ///< without ".csv"
  std::string rows;  ///< what has a row of its own: "each loss scale"
  std::vector<ColumnNote> columns;
  std::string when;
};

/// A key of summary.json, or several with one meaning, separated by commas.
struct SummaryKey {
  std::string name;
  std::string meaning;
  std::string when;
};

/// All that a program writes besides figures, verdict and manifest.
struct Outputs {
  std::string words;  ///< what the names in verdict and tables mean, in whole lines; told first
  std::vector<TableNote> tables;
  std::vector<SummaryKey> summary_keys;
};

/// The longest line of --help and --help-outputs, in characters.
inline constexpr std::size_t help_width = 100;

/// Lines of at most `width` characters, as far as words allow, none of which ends in a space. What a line is too long for
/// goes on below it, as far to the right as its text, or its second column, begins.
std::string wrapped(std::string_view text, std::size_t width);

/// The words, files and keys in lines of up to help_width characters. An entry begins after two spaces, what goes on after
/// more; units stand in parentheses, what brings an entry in brackets.
std::string text_of(const Outputs& outputs);

}  // namespace experiments
