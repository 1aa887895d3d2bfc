#pragma once
/// Rows of the library's tables by their names.

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "fp16/formats.h"

namespace halflab::page {

/// Throws std::invalid_argument for a name that no row has.
template <class Rows>
const auto& row_named(const Rows& rows, std::string_view family, std::string_view name) {
  const auto found = std::ranges::find_if(rows, [&](const auto& row) { return row.name == name; });
  if (found == rows.end()) throw std::invalid_argument(fmt::format("there is no {} '{}'", family, name));
  return *found;
}

inline const fp16::NamedFormat& format_named(std::string_view name) {
  return row_named(fp16::formats, "format", name);
}

}  // namespace halflab::page
