#include "tests/oracle/exact_operations.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

#include "tests/oracle/exact_half.h"
#include "tests/oracle/hard_cases.h"

namespace oracle {
namespace {

Answer rounded(std::string_view name, double value, const Settings& settings = {}) {
  return Placed(exact_format(name), from_double(value)).rounded(settings);
}

TEST_CASE("borders of the small formats done by hand") {
  // 448 has an even code, so the tie at 464 stays; what follows would be 480, whose code is a NaN.
  CHECK(rounded("e4m3", 464) == Answer{.bits = 0x7e, .inexact = true});
  CHECK(rounded("e4m3", 464.5) == Answer{.bits = 0x7f, .inexact = true, .overflow = true});
  CHECK(rounded("e4m3", -500, {.saturate = true}) == Answer{.bits = 0xfe, .inexact = true, .overflow = true});
  CHECK(rounded("e4m3", 449, {.mode = Mode::to_odd}) ==
        Answer{.bits = 0x7e, .inexact = true, .overflow = true});
  CHECK(rounded("e5m2", 61440) == Answer{.bits = 0x7c, .inexact = true, .overflow = true});
  CHECK(rounded("e5m2", -61440, {.mode = Mode::toward_positive}) == Answer{.bits = 0xfb, .inexact = true});
  CHECK(rounded("e4m3_fnuz", -0.0) == Answer{.bits = 0});
  CHECK(rounded("e4m3_fnuz", 1000) == Answer{.bits = 0x80, .inexact = true, .overflow = true});
  CHECK(rounded("e2m1", 5) == Answer{.bits = 0x6, .inexact = true});
  CHECK(rounded("e2m1", -100) == Answer{.bits = 0xf, .inexact = true, .overflow = true});
  CHECK(rounded("e8m0", 1.5) == Answer{.bits = 0x80, .inexact = true});
  CHECK(rounded("e8m0", 3) == Answer{.bits = 0x80, .inexact = true});
  CHECK(rounded("e8m0", 0) == Answer{.bits = 0, .inexact = true, .underflow = true});
  CHECK(rounded("e8m0", -1) == Answer{.bits = 0xff, .invalid = true});
}

TEST_CASE("the stochastic threshold is the fraction, in subnormals and beyond the largest number too") {
  const std::uint64_t quarter = std::uint64_t{1} << 62;
  const ExactFormat& format = exact_format("e2m1");
  CHECK(Placed(format, from_double(2.25)).fraction_bits() == quarter);
  CHECK(Placed(format, from_double(0.125)).fraction_bits() == quarter);
  CHECK(Placed(format, from_double(6.5)).fraction_bits() == quarter);
  CHECK(rounded("e2m1", 2.25, {.mode = Mode::stochastic, .random_bits = quarter - 1}).bits == 0x5);
  CHECK(rounded("e2m1", 2.25, {.mode = Mode::stochastic, .random_bits = quarter}).bits == 0x4);
  CHECK(rounded("e2m1", 6.5, {.mode = Mode::stochastic, .random_bits = quarter}) ==
        Answer{.bits = 0x7, .inexact = true});
  // 1/3 lies two thirds of the way from 0 to 1/2.
  CHECK(Placed(format, divide(format, 0x2, 0x5)).fraction_bits() == 0xaaaaaaaaaaaaaaaa);
  // sqrt(2) lies (sqrt(2) - 1) * 2 of the way from 1 to 3/2.
  CHECK(Placed(format, square_root(format, 0x4)).fraction_bits() == 0xd413cccfe7799211);
}

TEST_CASE("flushing and both kinds of tininess done by hand") {
  // 2^-6 - 2^-11: four digits round it to 2^-6.
  const double nearly_normal = 0x1p-6 - 0x1p-11;
  CHECK(rounded("e4m3", nearly_normal) == Answer{.bits = 0x08, .inexact = true});
  CHECK(rounded("e4m3", nearly_normal, {.tiny_before_rounding = true}) ==
        Answer{.bits = 0x08, .inexact = true, .underflow = true});
  CHECK(rounded("e4m3", -0x1p-7, {.flush_to_zero = true}) ==
        Answer{.bits = 0x80, .inexact = true, .underflow = true});
  CHECK(rounded("e4m3", nearly_normal, {.flush_to_zero = true}).bits == 0x08);
}

void check_equal(const Placed& placed, const Outcomes& expected) {
  for (std::size_t i = 0; i < direction_count; ++i) {
    const Outcome& outcome = expected[i];
    const Answer answer{outcome.bits,     outcome.inexact,        outcome.underflow,
                        outcome.overflow, outcome.divide_by_zero, outcome.invalid};
    const Answer got = placed.rounded({.mode = static_cast<Mode>(i)});
    if (got != answer) FAIL_CHECK(text(got) << " instead of " << text(answer));
  }
}

TEST_CASE("the two oracles agree on boundary-weighted halves") {
  const ExactFormat& half = exact_format("binary16");
  HardHalves cases(41);
  for (int i = 0; i < 5'000; ++i) {
    const std::uint16_t a = cases.next(), b = i % 2 == 0 ? cases.next() : cases.near(a), c = cases.next();
    check_equal(Placed(half, add(half, a, b)), add(a, b));
    check_equal(Placed(half, subtract(half, a, b)), subtract(a, b));
    check_equal(Placed(half, multiply(half, a, b)), multiply(a, b));
    check_equal(Placed(half, divide(half, a, b)), divide(a, b));
    check_equal(Placed(half, square_root(half, a)), sqrt(a));
    check_equal(Placed(half, fma(half, a, b, c)), fma(a, b, c));
  }
  const ExactFormat& single = exact_format("binary32");
  HardFloats floats(42);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint32_t a = floats.next();
    check_equal(Placed(half, convert(half, single, a)), from_binary32(a));
  }
}

}  // namespace
}  // namespace oracle
