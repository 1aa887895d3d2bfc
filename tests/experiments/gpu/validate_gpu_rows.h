#pragma once
/// Rows of validate_gpu by their names, for its tests.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "experiments/gpu/validate_gpu/rows.h"

namespace test {

inline std::size_t row_index(const std::string& id) {
  using experiments::validate_gpu::Row;
  const auto& rows = experiments::validate_gpu::rows();
  const auto found = std::ranges::find(rows, id, &Row::id);
  REQUIRE(found != rows.end());
  return static_cast<std::size_t>(found - rows.begin());
}

}  // namespace test
