#include "tests/oracle/exact_half.h"

#include <doctest/doctest.h>

namespace oracle {
namespace {

constexpr std::size_t even = 0, away = 1, zero = 2, up = 3, down = 4, odd = 5;

TEST_CASE("the oracle's list of halves has the values one writes down by hand") {
  CHECK(exact_value(std::uint16_t{0x0001}) == Rational(1, 1 << 24));
  CHECK(exact_value(std::uint16_t{0x03ff}) == Rational(1023, 1 << 24));
  CHECK(exact_value(std::uint16_t{0x0400}) == Rational(1, 1 << 14));
  CHECK(exact_value(std::uint16_t{0x3555}) == Rational(1365, 4096));
  CHECK(exact_value(std::uint16_t{0xbc01}) == Rational(-1025, 1024));
  CHECK(exact_value(std::uint16_t{0x7bff}) == 65504);
  CHECK(exact_value(0.375) == Rational(3, 8));
  CHECK(exact_value(-0x1p-1074) == Rational(-1, boost::multiprecision::cpp_int(1) << 1074));
}

TEST_CASE("the oracle rounds ties, borders and overflow as one does by hand") {
  const Outcomes tie = from_binary32(0x3f801000);  // 1 + 2^-11
  CHECK(tie[even] == Outcome{.bits = 0x3c00, .inexact = true});
  CHECK(tie[away].bits == 0x3c01);
  CHECK(tie[zero].bits == 0x3c00);
  CHECK(tie[up].bits == 0x3c01);
  CHECK(tie[down].bits == 0x3c00);
  CHECK(tie[odd].bits == 0x3c01);

  const Outcomes overflow = from_binary32(0xc77ff000);  // -65520
  CHECK(overflow[even] == Outcome{.bits = 0xfc00, .inexact = true, .overflow = true});
  CHECK(overflow[zero] == Outcome{.bits = 0xfbff, .inexact = true});
  CHECK(overflow[up] == Outcome{.bits = 0xfbff, .inexact = true});
  CHECK(overflow[down] == Outcome{.bits = 0xfc00, .inexact = true, .overflow = true});
  CHECK(overflow[odd] == Outcome{.bits = 0xfbff, .inexact = true});
  CHECK(from_binary32(0x47800000)[odd] == Outcome{.bits = 0x7bff, .inexact = true, .overflow = true});

  const Outcomes flushed = from_binary32(0x33000000);  // 2^-25
  CHECK(flushed[even] == Outcome{.bits = 0x0000, .inexact = true, .underflow = true});
  CHECK(flushed[away] == Outcome{.bits = 0x0001, .inexact = true, .underflow = true});

  // 2^-14 - 2^-26 has eleven digits' rounding 2^-14, so it is not tiny; 2^-14 - 2^-25 is, and exact only
  // below.
  CHECK(from_binary32(0x387ff000)[even] == Outcome{.bits = 0x0400, .inexact = true});
  CHECK(from_binary32(0x387fe000)[even] == Outcome{.bits = 0x0400, .inexact = true, .underflow = true});
}

TEST_CASE("the oracle's operations on values done by hand") {
  CHECK(add(0x3c00, 0x3c00)[even] == Outcome{.bits = 0x4000});
  CHECK(add(0x3c00, 0xbc00)[even].bits == 0x0000);
  CHECK(add(0x3c00, 0xbc00)[down].bits == 0x8000);
  CHECK(subtract(0x8000, 0x0000)[even].bits == 0x8000);
  CHECK(multiply(0x0001, 0x3800)[even] == Outcome{.bits = 0x0000, .inexact = true, .underflow = true});
  CHECK(divide(0x3c00, 0x4200)[even] == Outcome{.bits = 0x3555, .inexact = true});
  CHECK(divide(0xbc00, 0x0000)[even] == Outcome{.bits = 0xfc00, .divide_by_zero = true});
  CHECK(sqrt(0x4000)[even] == Outcome{.bits = 0x3da8, .inexact = true});
  CHECK(sqrt(0x4400)[even] == Outcome{.bits = 0x4000});
  CHECK(sqrt(0xbc00)[even] == Outcome{.bits = 0xfe00, .invalid = true});
  CHECK(fma(0x0001, 0x0001, 0x7800)[up] == Outcome{.bits = 0x7801, .inexact = true});
  CHECK(fma(0x7c00, 0x0000, 0x7d01)[even] == Outcome{.bits = 0x7f01, .invalid = true});
}

}  // namespace
}  // namespace oracle
