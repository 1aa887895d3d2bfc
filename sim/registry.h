#pragma once
/// Look-up by name in an explicit list of rows, shared by every family of variants (scalers, optimizers,
/// policies, operations, models, data sources). A row is any struct with a member `name`.

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sim {

/// A list of rows whose `name` reads as text. Borrowed: the rows outlive the look-up, so it may return a
/// reference.
template <class Rows>
concept RegistryRows = std::ranges::forward_range<Rows> && std::ranges::borrowed_range<Rows> &&
    requires(const std::ranges::range_value_t<Rows>& row) {
  std::string_view{row.name};
};

/// True when no two rows share a name; every registry states it as a static_assert.
template <RegistryRows Rows>
constexpr bool has_unique_names(Rows&& rows) {
  for (auto row = std::ranges::begin(rows); row != std::ranges::end(rows); ++row) {
    for (auto other = std::ranges::begin(rows); other != row; ++other) {
      if (std::string_view{row->name} == std::string_view{other->name}) {
        return false;
      }
    }
  }
  return true;
}

/// The names of all rows in their order, as `--list` prints them.
template <RegistryRows Rows>
std::vector<std::string> names_of(Rows&& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) {
    names.emplace_back(std::string_view{row.name});
  }
  return names;
}

/// Levenshtein distance: the fewest insertions, deletions and replacements that turn `from` into `to`.
inline std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// One line such as "unknown scaler 'dinamic'; did you mean 'dynamic'? allowed: none, static, dynamic".
inline std::string unknown_name_message(std::string_view family, std::string_view name,
                                        const std::vector<std::string>& allowed) {
  std::string message = "unknown " + std::string(family) + " '" + std::string(name) + "'; ";
  if (allowed.empty()) {
    return message + "none is allowed";
  }
  const auto nearest = std::ranges::min_element(
      allowed, {}, [name](const std::string& candidate) { return edit_distance(name, candidate); });
  message += "did you mean '" + *nearest + "'? allowed: ";
  for (const std::string& candidate : allowed) {
    message += (&candidate == &allowed.front() ? "" : ", ") + candidate;
  }
  return message;
}

/// The row called `name`. `family` is the word for the error: "scaler", "optimizer", "model".
/// Throws std::invalid_argument with the nearest name and all allowed ones when there is no such row.
template <RegistryRows Rows>
const auto& find_by_name(Rows&& rows, std::string_view family, std::string_view name) {
  for (const auto& row : rows) {
    if (std::string_view{row.name} == name) {
      return row;
    }
  }
  throw std::invalid_argument(unknown_name_message(family, name, names_of(rows)));
}

}  // namespace sim
