#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>
#include <string>

#include "fp16/names.h"

namespace {

struct Sample {
  float scale = 4;
  double decay = 0.5;
  int interval = 10;

  static constexpr std::string_view subject = "sample";
  static void visit(auto& self, auto&& field) {
    field("scale", self.scale, names::Interval{.lower = 0});
    field("decay", self.decay, names::Interval{.lower = 0, .upper = 1, .includes_lower = true});
    field("interval", self.interval, names::closed_interval(1, 100));
  }
};

struct Rate {
  double rate = 1;

  static constexpr std::string_view subject = "rate";
  static void visit(auto& self, auto&& field) {
    field("rate", self.rate, names::computed_in_binary32({.lower = 0, .upper = 2, .includes_lower = true}));
  }
};

}  // namespace

TEST_CASE("what is given overrides the defaults and the rest stays") {
  const auto options = names::options_from<Sample>({{"decay", 0.25}, {"interval", 100}});
  CHECK(names::named_values(options) == names::NamedValues{{"scale", 4}, {"decay", 0.25}, {"interval", 100}});
}

TEST_CASE("a value outside its interval is refused with the interval") {
  CHECK_THROWS_WITH_AS(names::options_from<Sample>({{"decay", 1}}),
                       "sample: decay = 1 is not allowed; allowed: numbers in [0, 1)", std::invalid_argument);
  CHECK_THROWS_WITH_AS(names::options_from<Sample>({{"interval", 0}}),
                       "sample: interval = 0 is not allowed; allowed: whole numbers in [1, 100]",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(names::options_from<Sample>({{"scale", -0.5}}),
                       "sample: scale = -0.5 is not allowed; allowed: numbers in (0, inf)",
                       std::invalid_argument);
  for (const double interval : {1.5, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(names::options_from<Sample>({{"interval", interval}}), std::invalid_argument);
  }
  CHECK_NOTHROW(names::options_from<Sample>({{"decay", 0}, {"interval", 1}}));
}

TEST_CASE("a value is judged as the type that will hold it") {
  CHECK_THROWS_WITH_AS(
      names::options_from<Sample>({{"scale", 1e-50}}),  // 0 as a float
      "sample: scale = 1e-50 is not allowed; allowed: numbers in (0, inf) after rounding to binary32",
      names::OptionError);
  CHECK_THROWS_WITH_AS(
      names::options_from<Sample>({{"scale", 1e50}}),  // infinite as a float
      "sample: scale = 1e+50 is not allowed; allowed: numbers in (0, inf) after rounding to binary32",
      names::OptionError);
  CHECK_NOTHROW(names::options_from<Sample>({{"scale", 0x1p-149}}));
}

TEST_CASE("a double that is computed with in binary32 keeps its bounds and its precision there") {
  const auto error_of = [](double rate) {
    try {
      names::options_from<Rate>({{"rate", rate}});
    } catch (const names::OptionError& error) {
      return error.allowed();
    }
    return std::string();
  };
  for (const double good : {0.0, 0x1p-126, 1e-30, 0.1, 0x1.fffffep0}) CHECK(error_of(good).empty());
  for (const double vanishing : {1e-320, 0x1p-150, 0x1p-149, 1e-40})
    CHECK(error_of(vanishing) == "numbers in [0, 2) after rounding to binary32, at least 2^-126 where not 0");
  for (const double too_much : {1e-40, 1e39}) {
    CHECK_THROWS_WITH(
        names::checked_option<double>("sample", "rate", too_much, names::computed_in_binary32({.lower = 0})),
        doctest::Contains("numbers in (0, inf) after rounding to binary32, 2^-126 to 3.4e38 where not 0"));
  }
  CHECK(error_of(0x1.ffffffp0) == "numbers in [0, 2) after rounding to binary32");
  CHECK(error_of(2) == "numbers in [0, 2)");
}

TEST_CASE("a whole number has the bounds of int where its interval has none") {
  const auto checked = [](double value, const names::Interval& allowed) {
    return names::checked_option<int>("sample", "count", value, allowed);
  };
  const names::Interval not_negative{.lower = 0, .includes_lower = true};
  CHECK(checked(0x7fffffff, not_negative) == 0x7fffffff);
  CHECK(checked(-0x7fffffff, {}) == -0x7fffffff);
  CHECK_THROWS_WITH_AS(checked(3e9, not_negative),
                       "sample: count = 3e+09 is not allowed; allowed: whole numbers in [0, 2147483647]",
                       names::OptionError);
  CHECK_THROWS_WITH_AS(
      checked(-3e9, {}),
      "sample: count = -3e+09 is not allowed; allowed: whole numbers in [-2147483647, 2147483647]",
      names::OptionError);
  CHECK_THROWS_WITH_AS(checked(0, {.lower = 0, .upper = 2}),
                       "sample: count = 0 is not allowed; allowed: whole numbers in (0, 2)",
                       names::OptionError);
}

TEST_CASE("the error of an option says apart what is allowed") {
  try {
    names::options_from<Sample>({{"interval", 0}});
    FAIL("0 was accepted");
  } catch (const names::OptionError& error) {
    CHECK(error.allowed() == "whole numbers in [1, 100]");
  }
}

TEST_CASE("an unknown option is answered with the nearest name") {
  CHECK_THROWS_WITH_AS(
      names::options_from<Sample>({{"intervall", 1}}),
      "sample: unknown option 'intervall'; did you mean 'interval'? allowed: scale, decay, interval",
      std::invalid_argument);
}

TEST_CASE("options set in code are checked too") {
  CHECK_NOTHROW(names::checked(Sample{}));
  CHECK_THROWS_AS(names::checked(Sample{.decay = std::numeric_limits<double>::quiet_NaN()}),
                  std::invalid_argument);
}

TEST_CASE("saved state is restored only when it is complete and in order") {
  const Sample saved{.scale = 2, .decay = 0, .interval = 7};
  const auto values = names::named_values(saved);
  CHECK(names::named_values(names::state_from<Sample>(values)) == values);
  CHECK_THROWS_WITH_AS(names::state_from<Sample>({{"scale", 2}, {"decay", 0}}),
                       "sample: saved state lacks 'interval'", std::invalid_argument);
  CHECK_THROWS_WITH_AS(names::state_from<Sample>({{"scale", 2}, {"interval", 7}, {"decay", 0}}),
                       "sample: saved state has 'interval' in place of 'decay'", std::invalid_argument);
  CHECK_THROWS_WITH_AS(names::state_from<Sample>({{"scale", 2}, {"decay", 0}, {"interval", 7}, {"extra", 1}}),
                       "sample: saved state has an unknown entry 'extra'", std::invalid_argument);
  CHECK_THROWS_AS(names::state_from<Sample>({{"scale", 2}, {"decay", 0}, {"interval", 0}}),
                  std::invalid_argument);
}
