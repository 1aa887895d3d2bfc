#pragma once
/// Rows of text in TOML files, with errors that name the file, the row and the key.

#include <toml++/toml.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace experiments::pages {

/// One table of texts and lists of texts. Errors are std::runtime_error and begin with its name.
class Row {
 public:
  /// Throws where `node` is no table or has a key that is none of `allowed`.
  Row(const toml::node& node, std::string name, const std::vector<std::string_view>& allowed);

  const std::string& name() const { return name_; }
  /// Throws where the key is missing or holds something else.
  std::string text(std::string_view key) const;
  /// Empty where the key is missing.
  std::string text_or_nothing(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

 private:
  const toml::table* table_;
  std::string name_;
};

/// The rows of an array of tables, named "FILE: KEY 3"; none where it is missing.
std::vector<Row> rows_of(const toml::table& table, std::string_view key, const std::filesystem::path& file,
                         const std::vector<std::string_view>& allowed);

}  // namespace experiments::pages
