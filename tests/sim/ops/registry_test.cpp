/// Every row of the registry: that it says all that an operation must say.

#include "sim/ops/registry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ops/relu.h"

namespace {

using sim::Operation;

/// The members that a row leaves unsaid. "On no list" and "no multipliers" are said, each with its own name.
std::vector<std::string> unsaid(const Operation& row) {
  std::vector<std::string> members;
  const auto expect = [&members](bool is_said, const char* member) {
    if (!is_said) members.emplace_back(member);
  };
  expect(!row.name.empty(), "name");
  expect(!row.description.empty(), "description");
  expect(row.casts.has_value(), "casts");
  expect(row.forward != nullptr, "forward");
  expect(row.backward != nullptr, "backward");
  expect(row.unit_multipliers != nullptr, "unit_multipliers");
  return members;
}

}  // namespace

TEST_CASE("operations: every row says how it runs, casts and is multiplied under unit scaling") {
  for (const Operation* row : sim::operations()) {
    for (const std::string& member : unsaid(*row)) FAIL_CHECK(row->name, " says no ", member);
  }
}

TEST_CASE("operations: a row that leaves a member unsaid is told apart") {
  struct Omission {
    const char* member;
    void (*omit)(Operation&);
  };
  constexpr std::array omissions{
      Omission{"name", [](Operation& row) { row.name = {}; }},
      Omission{"description", [](Operation& row) { row.description = {}; }},
      Omission{"casts", [](Operation& row) { row.casts = {}; }},
      Omission{"forward", [](Operation& row) { row.forward = {}; }},
      Omission{"backward", [](Operation& row) { row.backward = {}; }},
      Omission{"unit_multipliers", [](Operation& row) { row.unit_multipliers = {}; }},
  };
  for (const auto& [member, omit] : omissions) {
    Operation row = sim::relu;
    REQUIRE(unsaid(row).empty());
    omit(row);
    CHECK(unsaid(row) == std::vector<std::string>{member});
  }
  CHECK(unsaid(Operation{}).size() == omissions.size());
}

TEST_CASE("operations: names are unique") {
  std::set<std::string_view> names;
  for (const Operation* row : sim::operations()) {
    INFO(row->name);
    CHECK(names.insert(row->name).second);
  }
  CHECK_FALSE(names.empty());
}
