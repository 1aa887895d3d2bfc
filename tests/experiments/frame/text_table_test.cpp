#include "experiments/frame/text_table.h"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "experiments/training/glossary.h"

using experiments::parse_text_table;
using experiments::TextTable;

namespace {

const TextTable scalers{.columns = {"scaler", "final loss", "± spread", "note"},
                        .rows = {{"none", "0.21", "<0.001", "stalls"}, {"dynamic", "-0.0712", "–", ""}}};

}  // namespace

TEST_CASE("numbers stand to the right, texts to the left, characters are counted, not bytes") {
  CHECK(scalers.text() ==
        "scaler   final loss  ± spread  note\n"
        "-------  ----------  --------  ------\n"
        "none           0.21    <0.001  stalls\n"
        "dynamic     -0.0712         –\n");
}

TEST_CASE("a table reads back from its text") {
  TextTable table;
  REQUIRE(parse_text_table(scalers.text(), table));
  CHECK(table.columns == scalers.columns);
  CHECK(table.rows == scalers.rows);
}

TEST_CASE("notes stand below the table and are read back") {
  const TextTable explained{.columns = {"policy", "swallowed"},
                            .rows = {{"O3", "12 %"}},
                            .notes = {experiments::notes::swallowed, "a note"}};
  CHECK(explained.text() ==
        "policy  swallowed\n"
        "------  ---------\n"
        "O3           12 %\n"
        "* swallowed: updates that left the weight as it was, since rounding undid them.\n"
        "* a note\n");
  TextTable table;
  REQUIRE(parse_text_table(explained.text(), table));
  CHECK(table.rows == explained.rows);
  REQUIRE(table.notes.size() == 2);
  CHECK(table.notes[0].starts_with("swallowed: "));
  CHECK(table.notes[1] == "a note");
}

TEST_CASE("prose is not a table") {
  TextTable table;
  for (const char* text : {"", "One line.", "Two lines,\nof prose.", "Title\n\nText", "a\n--x--\n"}) {
    CHECK_FALSE(parse_text_table(text, table));
  }
}

TEST_CASE("a row must have one cell per column") {
  CHECK_THROWS_AS((TextTable{.columns = {"a", "b"}, .rows = {{"1"}}}.text()), std::logic_error);
}

TEST_CASE("shares keep their first digits, and only nothing is 0 %") {
  CHECK(experiments::percent(0.123) == "12.3 %");
  CHECK(experiments::percent(0.00512) == "0.51 %");
  CHECK(experiments::percent(0.00012) == "0.012 %");
  CHECK(experiments::percent(0) == "0 %");
  CHECK(experiments::percent(1e-12) == "1e-10 %");
  CHECK(experiments::percent(std::numeric_limits<double>::quiet_NaN()) == "-");
}
