#include "fp16/half_text.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <iomanip>
#include <ios>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fp16/half.h"

namespace fp16 {
namespace {

using Limits = std::numeric_limits<half>;

static_assert((1.5_h).bits() == 0x3e00);
static_assert((-0x1.8p-3_h).bits() == 0xb200);
static_assert(65'504_h == Limits::max());
static_assert((65519.999_h).bits() == 0x7bff);
// Through double, whose nearest number is the tie itself, this would be 1.
static_assert((1.00048828125000000000000000001_h).bits() == 0x3c01);
static_assert((1e-30_h).bits() == 0 && (0_h).bits() == 0 && (00.5_h).bits() == 0x3800);

template <char... characters>
concept compiles_as_literal = requires {
  typename std::integral_constant<std::uint16_t, literals::operator""_h<characters...>().bits()>;
};
static_assert(compiles_as_literal<'1', '.', '5'>);
static_assert(!compiles_as_literal<'0', '1', '5'>);
static_assert(!compiles_as_literal<'0', 'b', '1', '1'>);
static_assert(!compiles_as_literal<'6', '5', '5', '2', '0'>);
static_assert(!compiles_as_literal<'1', 'e'>);

TEST_CASE("a half has the texts of its code") {
  const half third = half(1) / 3;
  CHECK(to_shortest(third) == "0.3333");
  CHECK(to_string(third) == "0.3333");
  CHECK(to_exact(third) == "0.333251953125");
  CHECK(to_hex(third) == "0x1.554p-2");
  CHECK(to_fields(third) == "0 01101 0101010101");
}

TEST_CASE("parse_half reads the whole text, in any direction") {
  CHECK(parse_half("-1.5e0").bits() == 0xbe00);
  CHECK(parse_half("1.0001").bits() == 0x3c00);
  CHECK(parse_half("1.0001", {Rounding::toward_positive}).bits() == 0x3c01);
  CHECK(parse_half("70000").bits() == 0x7c00);
  CHECK(parse_half("snan(0x1f)").bits() == 0x7c1f);
}

static_assert(parse_half("2.718") == 2.718_h);

TEST_CASE("parse_half names text, position and what is allowed") {
  const std::string number =
      "expected a decimal number (-1.5e-3), a hexadecimal one (0x1.8p-3), inf, infinity, nan, nan(PAYLOAD) "
      "or "
      "snan(PAYLOAD)";
  const std::string payload = "the payload of a NaN must lie in 0 .. 511, of a signalling one in 1 .. 511";
  CHECK_THROWS_WITH_AS(parse_half(""), ("not a half: \"\", position 0: " + number).c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(parse_half("-one"), ("not a half: \"-one\", position 1: " + number).c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(parse_half("1.5\n"), "not a half: \"1.5?\", position 3: nothing may follow the number",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(parse_half("nan(512)"), ("not a half: \"nan(512)\", position 3: " + payload).c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      parse_half(std::string(100, '7') + "u"),
      ("not a half: \"" + std::string(60, '7') + "...\", position 100: nothing may follow the number")
          .c_str(),
      std::invalid_argument);
}

template <typename... Manipulators>
std::string printed(half a, Manipulators... manipulators) {
  std::ostringstream stream;
  (stream << ... << manipulators) << a;
  return stream.str();
}

TEST_CASE("streams: the shortest decimal by default") {
  CHECK(printed(0.1_h) == "0.1");
  CHECK(printed(Limits::max()) == "65504");
  CHECK(printed(-Limits::infinity()) == "-inf");
  CHECK(printed(0.1_h, std::setw(6)) == "   0.1");
  CHECK(printed(-0.1_h, std::setw(6), std::left, std::setfill('*')) == "-0.1**");
  CHECK(printed(-0.1_h, std::setw(6), std::internal, std::setfill('0')) == "-000.1");
  CHECK(printed(0.1_h, std::setw(6), std::internal, std::showpos) == "+  0.1");
  CHECK(printed(Limits::denorm_min(), std::uppercase) == "6E-08");
  CHECK(printed(-0.0_h, std::showpos) == "-0");
  std::ostringstream stream;
  stream << std::setw(4) << 1_h << 2_h;
  CHECK(stream.str() == "   12");
}

TEST_CASE("streams: the exact value where precision or notation are asked for") {
  CHECK(printed(0.1_h, std::setprecision(10)) == "0.09997558594");
  CHECK(printed(0.1_h, std::setprecision(2)) == "0.1");
  CHECK(printed(0.1_h, std::fixed) == "0.099976");
  CHECK(printed(0.1_h, std::scientific, std::setprecision(3)) == "9.998e-02");
  CHECK(printed(0.1_h, std::hexfloat) == "0x1.998p-4");
  CHECK(printed(1_h, std::showpoint) == "1.00000");
}

TEST_CASE("streams: every half reads back, quiet and signalling NaNs with their payloads too") {
  std::stringstream stream;
  for (int code = 0; code < 0x10000; ++code)
    stream << half::from_bits(static_cast<std::uint16_t>(code)) << ' ';
  int wrong = 0;
  half a;
  for (int code = 0; code < 0x10000; ++code) wrong += !(stream >> a) || a.bits() != code;
  CHECK(wrong == 0);
  CHECK_FALSE(static_cast<bool>(stream >> a));
}

struct Reading {
  std::string text;
  bool good;
  std::uint16_t bits;
  std::string rest;
};

TEST_CASE("streams: what is read, and what is left") {
  for (const Reading& reading : std::vector<Reading>{{" \n1.5,2", true, 0x3e00, ",2"},
                                                     {"1.5-2", true, 0x3e00, "-2"},
                                                     {"-1e+1+2", true, 0xc900, "+2"},
                                                     {"0x1.8p-3;", true, 0x3200, ";"},
                                                     {"0x1e-2", true, 0x4f80, "-2"},
                                                     {"(-inf)", false, 0, "(-inf)"},
                                                     {"-INF)", true, 0xfc00, ")"},
                                                     {"nan(5)(6)", true, 0x7e05, "(6)"},
                                                     {"nan(512)", false, 0, ""},
                                                     {"1.5x 2", false, 0, " 2"},
                                                     {"1.5.5", false, 0, ""},
                                                     {"", false, 0x3c00, ""},
                                                     {"+ 1", false, 0, " 1"},
                                                     {"1e5 2", false, 0x7c00, " 2"},
                                                     {"1e-30", true, 0, ""}}) {
    CAPTURE(reading.text);
    std::istringstream stream(reading.text);
    half a(1);
    CHECK(static_cast<bool>(stream >> a) == reading.good);
    CHECK(a.bits() == reading.bits);
    stream.clear();
    std::string left;
    std::getline(stream, left, '\0');
    CHECK(left == reading.rest);
  }
  std::istringstream at_end("1.5");
  half a;
  at_end >> a;
  CHECK(at_end.eof());
}

}  // namespace
}  // namespace fp16
