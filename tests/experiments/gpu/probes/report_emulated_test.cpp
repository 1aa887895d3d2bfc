#include <doctest/doctest.h>

#include <vector>

#include "tests/experiments/gpu/probes/report_program.h"

TEST_CASE("a report keeps the lowest numbers, each once, in whatever order they come") {
  using Indices = std::vector<unsigned long long>;
  CHECK(programs::lowest_kept({}) == Indices{});
  CHECK(programs::lowest_kept({5, 5, 5}) == Indices{5});
  CHECK(programs::lowest_kept({7, 3, 7, 0, 3}) == Indices{0, 3, 7});
  // A packed call with both answers wrong is given twice.
  Indices twice;
  for (unsigned long long index = 500; index-- > 0;) twice.insert(twice.end(), {2 * index, 2 * index});
  CHECK(programs::lowest_kept(twice) == Indices{0, 2, 4, 6, 8, 10, 12, 14});
}
