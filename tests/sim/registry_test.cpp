#include "sim/registry.h"

#include <doctest/doctest.h>

#include <array>
#include <span>
#include <stdexcept>

namespace {

struct Row {
  std::string_view name;
  int value;
};
constexpr std::array rows{Row{"none", 1}, Row{"static", 2}, Row{"dynamic", 3}};
constexpr std::array rows_with_duplicate{Row{"a", 1}, Row{"b", 2}, Row{"a", 3}};
static_assert(sim::has_unique_names(rows));
static_assert(!sim::has_unique_names(rows_with_duplicate));

}  // namespace

TEST_CASE("find_by_name returns the row itself") {
  const Row& found = sim::find_by_name(std::span<const Row>(rows), "scaler", "dynamic");
  CHECK(&found == &rows[2]);
}

TEST_CASE("an unknown name is answered with the nearest and all allowed ones") {
  CHECK_THROWS_WITH_AS(sim::find_by_name(rows, "scaler", "dinamic"),
                       "unknown scaler 'dinamic'; did you mean 'dynamic'? allowed: none, static, dynamic",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::find_by_name(std::span<const Row>(), "scaler", "x"),
                       "unknown scaler 'x'; none is allowed", std::invalid_argument);
}

TEST_CASE("names keep the order of the rows") {
  CHECK(sim::names_of(rows) == std::vector<std::string>{"none", "static", "dynamic"});
}

TEST_CASE("edit distance counts insertions, deletions and replacements") {
  CHECK(sim::edit_distance("", "") == 0);
  CHECK(sim::edit_distance("", "abc") == 3);
  CHECK(sim::edit_distance("abc", "") == 3);
  CHECK(sim::edit_distance("kitten", "sitting") == 3);
  CHECK(sim::edit_distance("flaw", "lawn") == 2);
}
