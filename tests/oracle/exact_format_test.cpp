#include "tests/oracle/exact_format.h"

#include <doctest/doctest.h>

#include <limits>
#include <string_view>
#include <vector>

namespace oracle {
namespace {

std::vector<double> positive_numbers(std::string_view name) {
  const ExactFormat& format = exact_format(name);
  std::vector<double> values;
  for (std::uint64_t code = 0; code <= format.facts().largest_code; ++code)
    values.push_back(format.value(code));
  return values;
}

TEST_CASE("the smallest formats hold the numbers that their specification lists") {
  CHECK(positive_numbers("e2m1") == std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6});
  CHECK(positive_numbers("e2m3") == std::vector<double>{0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875,
                                                        1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875,
                                                        2, 2.25,  2.5,  2.75,  3,   3.25,  3.5,  3.75,
                                                        4, 4.5,   5,    5.5,   6,   6.5,   7,    7.5});
  CHECK(positive_numbers("e3m2") ==
        std::vector<double>{0,     0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.625, 0.75,
                            0.875, 1,      1.25,  1.5,    1.75, 2,      2.5,   3,      3.5, 4,     5,
                            6,     7,      8,     10,     12,   14,     16,    20,     24,  28});
}

TEST_CASE("every format ends at the largest number of its specification") {
  for (const ExactFormat& format : exact_formats()) {
    CAPTURE(format.facts().name);
    CHECK(format.value(format.facts().largest_code) == format.facts().largest);
    CHECK(format.value(format.facts().has_zero) == format.facts().smallest);
    if (format.facts().has_zero)
      CHECK(format.value(format.facts().codes_per_binade) == format.facts().smallest_normal);
  }
  CHECK(exact_format("e4m3").value(0x38) == 1);
  CHECK(exact_format("e4m3_fnuz").value(0xc0) == -1);
  CHECK(exact_format("e5m2_fnuz").value(0x40) == 1);
  CHECK(exact_format("e8m0").value(0x7f) == 1);
  CHECK(exact_format("e5m2").value(0xfc) == -std::numeric_limits<double>::infinity());
  CHECK(exact_format("e4m3").is_nan(0xff));
  CHECK(exact_format("e4m3_fnuz").is_nan(0x80));
  CHECK(!exact_format("e4m3_fnuz").is_nan(0xff));
  CHECK(exact_format("e8m0").is_nan(0xff));
  CHECK(!exact_format("e2m1").is_nan(0xf));
}

}  // namespace
}  // namespace oracle
