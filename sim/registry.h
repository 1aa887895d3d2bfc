#pragma once
/// Look-up by name in an explicit list of rows, shared by every family of variants (scalers, optimizers,
/// policies, operations, models, data sources). A row is any struct with a member `name`.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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

/// The fewest insertions, deletions, replacements and exchanges of neighbours that turn `from` into `to`, none
/// of which touches what another has changed (optimal string alignment).
inline std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before_last, last, row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      row[j] = std::min({last[j - 1] + (same ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (exchanged) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

/// The name that is likely meant: the candidate at the smallest edit distance, the first of several, when that
/// is 1 or at most a third of the longer name's length and the two have something in common; else nothing.
inline std::optional<std::string> nearest_name(std::string_view name,
                                               const std::vector<std::string>& candidates) {
  const auto distance = [name](const std::string& candidate) { return edit_distance(name, candidate); };
  const auto nearest = std::ranges::min_element(candidates, {}, distance);
  if (nearest == candidates.end()) return std::nullopt;
  const std::size_t length = std::max(name.size(), nearest->size());
  const bool near = distance(*nearest) < length && distance(*nearest) <= std::max<std::size_t>(1, length / 3);
  return near ? std::optional(*nearest) : std::nullopt;
}

/// One line such as "unknown scaler 'dinamic'; did you mean 'dynamic'? allowed: none, static, dynamic", without
/// the question where no name is near.
inline std::string unknown_name_message(std::string_view family, std::string_view name,
                                        const std::vector<std::string>& allowed) {
  std::string message = "unknown " + std::string(family) + " '" + std::string(name) + "'; ";
  if (allowed.empty()) {
    return message + "none is allowed";
  }
  if (const std::optional<std::string> nearest = nearest_name(name, allowed)) {
    message += "did you mean '" + *nearest + "'? ";
  }
  message += "allowed: ";
  for (const std::string& candidate : allowed) {
    message += (&candidate == &allowed.front() ? "" : ", ") + candidate;
  }
  return message;
}

/// The row called `name`. `family` is the word for the error: "scaler", "optimizer", "model".
/// Throws std::invalid_argument with all allowed names, and the nearest if one is near, when there is no such row.
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
