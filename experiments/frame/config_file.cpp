#include "experiments/frame/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "experiments/frame/toml_file.h"

namespace experiments {
namespace {

std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const toml::array* array = node.as_array()) {
    std::vector<std::string> elements;
    for (const toml::node& element : *array) elements.push_back(text_of(element));
    return fmt::format("{}", fmt::join(elements, ","));
  }
  std::ostringstream text;  // a date, a time or a table among the elements of an array
  node.visit([&text](const auto& other) { text << other; });
  return text.str();
}

void add_entries(const toml::table& table, const std::string& prefix, std::vector<ConfigEntry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const toml::table* inner = node.as_table()) {
      add_entries(*inner, key + ".", entries);
    } else {
      entries.push_back({.key = key, .value = text_of(node), .line = name.source().begin.line});
    }
  }
}

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& file) {
  std::vector<ConfigEntry> entries;
  add_entries(read_toml_file(file), "", entries);
  std::ranges::stable_sort(entries, {}, &ConfigEntry::line);
  return entries;
}

}  // namespace experiments
