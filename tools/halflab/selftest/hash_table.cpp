#include "tools/halflab/selftest/hash_table.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

namespace halflab::selftest {
namespace {

constexpr std::string_view algorithm = "fnv1a-64";
constexpr std::size_t hash_digits = 16;

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  while (true) {
    const std::size_t tab = line.find('\t');
    columns.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return columns;
    line.remove_prefix(tab + 1);
  }
}

/// The lines of a table, one after the other.
class Lines {
 public:
  Lines(std::string_view text, std::string_view source) : rest_(text), source_(source) {}

  bool are_left() const { return !rest_.empty(); }
  /// The columns of the next line, of which there are three.
  std::vector<std::string_view> next(std::string_view allowed) {
    ++number_;
    const std::size_t end = rest_.find('\n');
    const std::vector<std::string_view> columns = columns_of(rest_.substr(0, end));
    if (end == std::string_view::npos || columns.size() != 3) refuse(allowed);
    rest_.remove_prefix(end + 1);
    return columns;
  }
  [[noreturn]] void refuse(std::string_view allowed) const {
    throw std::runtime_error(fmt::format("{}, line {}: must be {}", source_, number_, allowed));
  }

 private:
  std::string_view rest_, source_;
  int number_ = 0;
};

}  // namespace

HashTable parse_hashes(std::string_view text, std::string_view source) {
  constexpr std::string_view head = "'halflab', a version and 'fnv1a-64', with tabs between them",
                             row = "a group, a name and 16 hexadecimal digits, with tabs between them";
  Lines lines(text, source);
  const auto first = lines.next(head);
  if (first[0] != "halflab" || first[1].empty() || first[2] != algorithm) lines.refuse(head);
  HashTable table{.version = std::string(first[1]), .entries = {}};
  std::set<std::pair<std::string_view, std::string_view>> seen;
  while (lines.are_left()) {
    const auto columns = lines.next(row);
    const std::string_view digits = columns[2];
    std::uint64_t hash = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
    if (digits.size() != hash_digits || error != std::errc() || end != digits.data() + digits.size())
      lines.refuse(row);
    if (!seen.emplace(columns[0], columns[1]).second) lines.refuse("another name than one before");
    table.entries.push_back({std::string(columns[0]), std::string(columns[1]), hash});
  }
  return table;
}

std::string text_of(const HashTable& table) {
  std::string text = fmt::format("halflab\t{}\t{}\n", table.version, algorithm);
  for (const HashEntry& entry : table.entries)
    fmt::format_to(std::back_inserter(text), "{}\t{}\t{:016x}\n", entry.group, entry.name, entry.hash);
  return text;
}

}  // namespace halflab::selftest
