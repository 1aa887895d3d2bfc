#pragma once
/// What the --help-outputs of an experiment says that it writes, and whether a run's files agree with it.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace programs {

/// The name of a table, a column or a key, where <...> stands for anything.
struct Documented {
  std::string name;
  bool is_always_written;  ///< nothing in brackets says what brings it

  bool matches(const std::string& written) const {
    static const std::regex special(R"([.^$|()\[\]{}*+?\\])"), place("<[^>]*>");
    const std::string pattern = std::regex_replace(name, special, R"(\$&)");
    return std::regex_match(written, std::regex(std::regex_replace(pattern, place, ".+")));
  }
};

struct DocumentedTable {
  Documented table;
  std::vector<Documented> columns;
};

struct DocumentedOutputs {
  std::vector<DocumentedTable> tables;
  std::vector<Documented> keys;
};

/// What runs of one program wrote: the columns of each table, and the keys of the summary.
struct Written {
  std::map<std::string, std::vector<std::string>> tables;
  std::vector<std::string> keys;

  void add(const std::map<std::string, std::string>& files) {
    for (const auto& [file, content] : files) {
      if (!file.ends_with(".csv") || file.find('/') != std::string::npos) continue;
      std::istringstream header(content.substr(0, content.find('\n')));
      for (std::string column; std::getline(header, column, ',');) tables[file].push_back(column);
    }
    const auto summary = nlohmann::ordered_json::parse(files.at("summary.json"));
    for (const auto& [key, value] : summary.items()) keys.push_back(key);
  }
};

/// The entries under a heading: each begins after two spaces and goes on after more.
inline std::vector<std::string> entries_of(const std::string& text, const std::string& heading) {
  std::vector<std::string> entries;
  const std::size_t begin = text.find(heading + ":\n");
  if (begin == std::string::npos) return entries;
  std::istringstream lines(text.substr(begin + heading.size() + 2));
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    if (line[2] != ' ')
      entries.push_back(line);
    else
      entries.back() += '\n' + line;
  }
  return entries;
}

inline Documented documented(const std::string& text, std::size_t name_size) {
  return {text.substr(0, name_size), !text.ends_with(']')};
}

inline DocumentedOutputs parse_outputs(const std::string& printed) {
  DocumentedOutputs outputs;
  for (const std::string& entry : entries_of(printed, "Tables")) {
    const std::string head = entry.substr(2, entry.find('\n') - 2);
    DocumentedTable& table =
        outputs.tables.emplace_back(DocumentedTable{documented(head, head.find(", a row for"))});
    static const std::regex breaks("\n +"), parts(", ");
    const std::string columns = std::regex_replace(entry.substr(entry.find('\n') + 7), breaks, " ");
    for (std::sregex_token_iterator part(columns.begin(), columns.end(), parts, -1), end; part != end;
         ++part) {
      const std::string column = *part;
      table.columns.push_back(documented(column, std::min(column.find(" ("), column.find(" ["))));
    }
  }
  for (const std::string& entry : entries_of(printed, "Keys of summary.json")) {
    const std::string text = entry.substr(2),
                      names = text.substr(0, std::min(text.find("  "), text.find('\n')));
    static const std::regex parts(", ");
    for (std::sregex_token_iterator part(names.begin(), names.end(), parts, -1), end; part != end; ++part)
      outputs.keys.push_back({*part, !text.ends_with(']')});
  }
  return outputs;
}

/// What is written and not documented, or documented as always written and not there.
inline std::vector<std::string> disagreements(const DocumentedOutputs& outputs, const Written& written) {
  std::vector<std::string> found;
  const auto compare = [&](const std::string& where, const std::vector<Documented>& known,
                           const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (std::ranges::none_of(known, [&](const Documented& one) { return one.matches(name); }))
        found.push_back(where + name + " is not documented");
    }
    for (const Documented& one : known) {
      const bool is_there =
          std::ranges::any_of(names, [&](const std::string& name) { return one.matches(name); });
      if (one.is_always_written && !is_there) found.push_back(where + one.name + " is not written");
    }
  };
  std::vector<Documented> tables;
  for (const DocumentedTable& table : outputs.tables) tables.push_back(table.table);
  std::vector<std::string> files;
  for (const auto& [file, columns] : written.tables) files.push_back(file);
  compare("", tables, files);
  for (const auto& [file, columns] : written.tables) {
    std::vector<Documented> known;
    for (const DocumentedTable& table : outputs.tables) {
      if (!table.table.matches(file)) continue;
      for (Documented column : table.columns) {
        column.is_always_written &= table.table.is_always_written;
        known.push_back(column);
      }
    }
    compare(file + ": ", known, columns);
  }
  compare("summary: ", outputs.keys, written.keys);
  return found;
}

}  // namespace programs
