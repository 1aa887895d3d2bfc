#pragma once
/// Tables and summaries as lists of rows: a column or key is its name, what it is, and the function that gives its
/// value. A run writes by these rows, and --help prints them.

#include <concepts>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/frame/confidence.h"
#include "experiments/frame/help_text.h"
#include "experiments/frame/record.h"

namespace experiments {

/// A column of a table whose rows are made of `Row`s.
template <class Row>
struct Column {
  std::string name;  ///< as in the file's header
  std::string unit;  ///< as ColumnNote has it
  std::function<Value(const Row&)> value;
  std::string when;
};

/// The columns of a part of the row.
template <class Row, class Part>
std::vector<Column<Row>> columns_of_part(const std::vector<Column<Part>>& columns,
                                         const Part& (*part)(const Row&)) {
  std::vector<Column<Row>> result;
  for (const Column<Part>& column : columns) {
    result.push_back({column.name, column.unit,
                      [value = column.value, part](const Row& row) { return value(part(row)); },
                      column.when});
  }
  return result;
}

/// The mean of an estimate and the ends of its interval: <name>, <name>_lower and <name>_upper.
template <class Row>
std::vector<Column<Row>> interval_columns(const std::string& name, const std::string& unit,
                                          const std::function<Estimate(const Row&)>& estimate,
                                          const std::string& when = {}) {
  return {{name, unit, [estimate](const Row& row) { return estimate(row).mean; }, when},
          {name + "_lower", unit, [estimate](const Row& row) { return estimate(row).lower(); }, when},
          {name + "_upper", unit, [estimate](const Row& row) { return estimate(row).upper(); }, when}};
}

template <class T>
std::vector<T> joined(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The CSV file <name>.csv.
template <class Row>
struct TableOf {
  std::string name;
  std::string rows;  ///< as TableNote has it
  std::vector<Column<Row>> columns;
  std::string when;

  std::vector<std::string> header() const {
    std::vector<std::string> names;
    for (const Column<Row>& column : columns) names.push_back(column.name);
    return names;
  }

  std::vector<Value> cells(const Row& row) const {
    std::vector<Value> cells;
    for (const Column<Row>& column : columns) cells.push_back(column.value(row));
    return cells;
  }

  /// Begins the file. What it returns adds a row.
  auto start(RunRecord& record) const {
    return [this, &table = record.table(name, header())](const Row& row) { table.row(cells(row)); };
  }

  void write(RunRecord& record, const auto& list) const {
    const auto add = start(record);
    for (const Row& row : list) add(row);
  }

  TableNote note() const {
    TableNote note{.name = name, .rows = rows, .columns = {}, .when = when};
    for (const Column<Row>& column : columns) note.columns.push_back({column.name, column.unit, column.when});
    return note;
  }
};

/// What stands under a key of the summary: a number or a text; nothing, and the key is left out; or an estimate, whose
/// mean has the key and whose spread over several values the keys <key>_std, <key>_lower and <key>_upper.
class SummaryValue {
 public:
  template <std::convertible_to<Value> T>
  SummaryValue(T&& value) : content_(Value(std::forward<T>(value))) {}
  template <std::convertible_to<Value> T>
  SummaryValue(const std::optional<T>& value) {
    if (value) content_ = Value(*value);
  }
  SummaryValue(const Estimate& estimate) : content_(estimate) {}
  SummaryValue(const std::optional<Estimate>& estimate) {
    if (estimate) content_ = *estimate;
  }

  void write(RunRecord& record, const std::string& key) const;

 private:
  std::variant<std::monostate, Value, Estimate> content_;
};

/// `pattern` with its <...> replaced by the words, in order; there are as many.
std::string filled(std::string_view pattern, std::initializer_list<std::string_view> words);

/// What --help says of the spread of estimates.
SummaryKey spread_note();

/// A key of the summary, computed from a `Row`.
template <class Row>
struct SummaryRow {
  SummaryKey key;
  std::function<SummaryValue(const Row&)> value;
  bool is_estimate;

  template <class Function>
  SummaryRow(std::string name, std::string meaning, Function function, std::string when = {})
      : key{std::move(name), std::move(meaning), std::move(when)},
        value(std::move(function)),
        is_estimate(
            std::convertible_to<std::invoke_result_t<Function, const Row&>, std::optional<Estimate>>) {}
};

/// Keys of the summary that are written together.
template <class Row>
struct SummaryOf {
  std::vector<SummaryRow<Row>> rows;

  /// The words take the places of the names' <...>, the same in every name.
  void write(RunRecord& record, const Row& from, std::initializer_list<std::string_view> words = {}) const {
    for (const SummaryRow<Row>& row : rows) row.value(from).write(record, filled(row.key.name, words));
  }

  std::vector<SummaryKey> note() const {
    std::vector<SummaryKey> notes;
    bool has_estimates = false;
    for (const SummaryRow<Row>& row : rows) {
      notes.push_back(row.key);
      has_estimates |= row.is_estimate;
    }
    if (has_estimates) notes.push_back(spread_note());
    return notes;
  }
};

void add_to(Outputs& outputs, const TableNote& table);
/// Each key once, the spread of estimates last.
void add_to(Outputs& outputs, const std::vector<SummaryKey>& keys);
void add_to(Outputs& outputs, const Outputs& more);
template <class Rows>
void add_to(Outputs& outputs, const TableOf<Rows>& table) {
  add_to(outputs, table.note());
}
template <class Rows>
void add_to(Outputs& outputs, const SummaryOf<Rows>& summary) {
  add_to(outputs, summary.note());
}

/// What --help says of all that a program writes.
Outputs outputs_of(const auto&... written) {
  Outputs outputs;
  (add_to(outputs, written), ...);
  return outputs;
}

}  // namespace experiments
