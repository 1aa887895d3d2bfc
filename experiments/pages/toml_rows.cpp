#include "experiments/pages/toml_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace experiments::pages {

Row::Row(const toml::node& node, std::string name, const std::vector<std::string_view>& allowed)
    : table_(node.as_table()), name_(std::move(name)) {
  if (table_ == nullptr) throw std::runtime_error(name_ + ": must be a table");
  for (const auto& [key, value] : *table_) {
    if (std::ranges::find(allowed, key.str()) == allowed.end())
      throw std::runtime_error(fmt::format("{}: unknown key '{}'", name_, std::string(key.str())));
  }
}

std::string Row::text(std::string_view key) const {
  const auto value = table_->get_as<std::string>(key);
  if (value == nullptr) throw std::runtime_error(fmt::format("{}: '{}' must be a text", name_, key));
  return value->get();
}

std::string Row::text_or_nothing(std::string_view key) const {
  return table_->contains(key) ? text(key) : "";
}

std::vector<std::string> Row::texts(std::string_view key) const {
  std::vector<std::string> texts;
  if (!table_->contains(key)) return texts;
  const toml::array* array = table_->get_as<toml::array>(key);
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if (const auto text = (*array)[i].value<std::string>()) texts.push_back(*text);
  }
  if (array == nullptr || texts.size() != array->size())
    throw std::runtime_error(fmt::format("{}: '{}' must be a list of texts", name_, key));
  return texts;
}

std::vector<Row> rows_of(const toml::table& table, std::string_view key, const std::filesystem::path& file,
                         const std::vector<std::string_view>& allowed) {
  std::vector<Row> rows;
  const toml::array* array = table.get_as<toml::array>(key);
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i)
    rows.emplace_back((*array)[i], fmt::format("{}: {} {}", file.string(), key, i + 1), allowed);
  return rows;
}

}  // namespace experiments::pages
