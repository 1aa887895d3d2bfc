#include <doctest/doctest.h>

#include <array>
#include <span>
#include <stdexcept>

#include "fp16/names.h"

namespace {

struct Row {
  std::string_view name;
  int value;
};
constexpr std::array rows{Row{"none", 1}, Row{"static", 2}, Row{"dynamic", 3}};
constexpr std::array rows_with_duplicate{Row{"a", 1}, Row{"b", 2}, Row{"a", 3}};
static_assert(names::has_unique_names(rows));
static_assert(!names::has_unique_names(rows_with_duplicate));

}  // namespace

TEST_CASE("find_by_name returns the row itself") {
  const Row& found = names::find_by_name(std::span<const Row>(rows), "scaler", "dynamic");
  CHECK(&found == &rows[2]);
}

TEST_CASE("an unknown name is answered with all allowed ones, and the nearest if one is near") {
  CHECK_THROWS_WITH_AS(names::find_by_name(rows, "scaler", "dinamic"),
                       "unknown scaler 'dinamic'; did you mean 'dynamic'? allowed: none, static, dynamic",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(names::find_by_name(rows, "scaler", "foo"),
                       "unknown scaler 'foo'; allowed: none, static, dynamic", std::invalid_argument);
  CHECK_THROWS_WITH_AS(names::find_by_name(std::span<const Row>(), "scaler", "x"),
                       "unknown scaler 'x'; none is allowed", std::invalid_argument);
}

TEST_CASE("names keep the order of the rows") {
  CHECK(names::names_of(rows) == std::vector<std::string>{"none", "static", "dynamic"});
}

TEST_CASE("a name is near within one edit or a third of its length, if anything is left of it") {
  using Names = std::vector<std::string>;
  CHECK(names::nearest_name("growht_factor", Names{"growth_interval", "growth_factor"}) == "growth_factor");
  CHECK(names::nearest_name("O5", Names{"fp32", "O1", "O2"}) == "O1");
  CHECK(names::nearest_name("kitten", Names{"sitten"}) == "sitten");
  CHECK(names::nearest_name("sitting", Names{"kitten"}) == std::nullopt);    // 3 edits of 7
  CHECK(names::nearest_name("abcdxyzgh", Names{"abcdefgh"}) == "abcdefgh");  // 3 of 9
  CHECK(names::nearest_name("min", Names{"sin", "minimum"}) == "minimum");   // begins so
  CHECK(names::nearest_name("nvidia", Names{"any", "canonical_nvidia"}) == "canonical_nvidia");
  CHECK(names::nearest_name("mi", Names{"minimum"}) == std::nullopt);
  CHECK(names::nearest_name("x", Names{"y"}) == std::nullopt);
  CHECK(names::nearest_name("", Names{"y"}) == std::nullopt);
  CHECK(names::nearest_name("y", Names{}) == std::nullopt);
}

TEST_CASE("edit distance counts insertions, deletions, replacements and exchanges of neighbours") {
  CHECK(names::edit_distance("", "") == 0);
  CHECK(names::edit_distance("", "abc") == 3);
  CHECK(names::edit_distance("abc", "") == 3);
  CHECK(names::edit_distance("kitten", "sitting") == 3);
  CHECK(names::edit_distance("flaw", "lawn") == 2);
  CHECK(names::edit_distance("stpes", "steps") == 1);
  CHECK(names::edit_distance("ab", "ba") == 1);
  CHECK(names::edit_distance("ca", "abc") == 3);
}
