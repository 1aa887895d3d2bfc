#pragma once
/// What runs wrote, read back.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/json.h"

namespace experiments::validation {

/// An empty object where there is no such file or it holds no JSON object.
Json read_object(const std::filesystem::path& file);

/// A table as Table writes it.
class CsvTable {
 public:
  /// Nothing without the file. Throws std::runtime_error, naming the file and the line, where a row has not as
  /// many cells as the header.
  static std::optional<CsvTable> read(const std::filesystem::path& file);

  std::size_t size() const { return rows_.size(); }

  /// The cell of a row under a heading. Throws std::runtime_error, naming the file, without such a column.
  const std::string& cell(std::size_t row, std::string_view column) const;
  /// Throws std::runtime_error, naming file, row and column, for what is no unsigned integer.
  std::uint64_t number(std::size_t row, std::string_view column) const;
  /// Likewise for what is no number.
  double real(std::size_t row, std::string_view column) const;

 private:
  template <typename Number>
  Number parsed(std::size_t row, std::string_view column, std::string_view allowed) const;

  std::string file_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace experiments::validation
