#include "fp16/parse.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "fp16/bits.h"
#include "fp16/codec.h"
#include "fp16/formats.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/decimal_text.h"
#include "tests/oracle/exact_half.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

using oracle::decimal_text;
using oracle::Rational;
using namespace std::string_literals;
using namespace std::string_view_literals;

static_assert(parse<binary16>("1.00048828125").bits == 0x3c00);
static_assert(parse<binary16>("1.00048828125000000000000000001").bits == 0x3c01);
static_assert(parse<binary16>("-0x1.8p-3").bits == 0xb200);
static_assert(parse<binary64>("4.9e-324").bits == 1);

/// `parse`, and that it was content with the whole text.
template <const Format& F>
Result<F> parse_whole(std::string_view text, const Attributes& attributes = {}) {
  const ParseResult<F> result = parse<F>(text, attributes);
  if (result.error != std::errc{} || result.end != text.data() + text.size())
    FAIL_CHECK("not read to its end: " << text);
  return {.bits = result.bits, .flags = result.flags};
}

/// Stands for any amount below 2^-26: everything that decides the rounding of a half is a multiple of that.
const Rational late(1, std::int64_t{1} << 40);

/// The text with 1,000 zeros and a 1 behind its last digit.
std::string with_late_one(std::string digits) {
  if (digits.find('.') == std::string::npos) digits += '.';
  return digits + std::string(1000, '0') + '1';
}

TEST_CASE("binary16: every tie, the decimal below it, and a 1 appended a thousand digits later") {
  oracle::Comparison comparison("parse decimal");
  const auto compare = [&](const std::string& text, const Rational& value, std::uint64_t lower) {
    comparison.equal_in_all_directions(
        oracle::from_rational(value), {lower},
        [&](const Attributes& attributes) { return parse_whole<binary16>(text, attributes); });
    comparison.equal_in_all_directions(
        oracle::from_rational(Rational(-value)), {lower | 0x8000},
        [&](const Attributes& attributes) { return parse_whole<binary16>('-' + text, attributes); });
  };
  for (std::uint16_t lower = 0; lower < 0x7c00; ++lower) {
    const Rational upper = lower == 0x7bff ? Rational(65536) : oracle::exact_value(std::uint16_t(lower + 1));
    const Rational tie = (oracle::exact_value(lower) + upper) / 2;
    const std::string text = decimal_text(tie);
    const int places = oracle::decimal_places(tie);
    const Rational below = tie - oracle::power_of_ten(-places);
    compare(text, tie, lower);
    compare(decimal_text(below), below, lower);
    compare(with_late_one(text), tie + late, lower);
  }
  comparison.finish(0x7c00 * 3 * 2 * oracle::direction_count);
}

TEST_CASE("binary16: every tie in hexadecimal, and a 1 appended a thousand digits later") {
  oracle::Comparison comparison("parse hexadecimal");
  for (std::uint16_t lower = 1; lower < 0x7c00; ++lower) {
    const double upper = lower == 0x7bff ? 65536 : decode<binary16>(lower + 1);
    const double tie = (decode<binary16>(lower) + upper) / 2;
    std::array<char, 40> printed{};
    std::snprintf(printed.data(), printed.size(), "%a", tie);
    const std::string text = printed.data();
    const std::size_t mark = text.find('p');
    const std::string longer = with_late_one(text.substr(0, mark)) + text.substr(mark);
    comparison.equal_in_all_directions(
        oracle::from_rational(oracle::exact_value(tie)), {lower},
        [&](const Attributes& attributes) { return parse_whole<binary16>(text, attributes); });
    comparison.equal_in_all_directions(
        oracle::from_rational(oracle::exact_value(tie) + late), {lower},
        [&](const Attributes& attributes) { return parse_whole<binary16>(longer, attributes); });
  }
  comparison.finish((0x7c00 - 1) * 2 * oracle::direction_count);
}

/// Values of neighbouring positive codes and between them, as text, in every direction. `lower` + 1 must be
/// finite.
template <const Format& F>
void check_between(Bits<F> lower) {
  const auto upper = static_cast<Bits<F>>(lower + 1);
  const Rational low = oracle::exact_value(decode<F>(lower));
  const Rational high = oracle::exact_value(decode<F>(upper));
  const Rational tie = (low + high) / 2;
  const Rational small_step = (high - low) / 1024;
  const Bits<F> even = lower % 2 == 0 ? lower : upper;
  const Bits<F> odd = lower % 2 == 0 ? upper : lower;
  const auto check = [&](const Rational& value, Bits<F> nearest_even, Bits<F> nearest_away) {
    const std::array<Bits<F>, oracle::direction_count> expected{nearest_even, nearest_away, lower,
                                                                upper,        lower,        odd};
    const std::string text = decimal_text(value);
    for (std::size_t i = 0; i < oracle::direction_count; ++i) {
      const Result<F> result = parse_whole<F>(text, {.rounding = oracle::roundings[i]});
      if (result.bits != expected[i] || !result.flags.inexact || result.flags.overflow)
        FAIL_CHECK(text << ' ' << oracle::direction_names[i] << ": " << +result.bits);
    }
  };
  check(tie, even, upper);
  check(tie - small_step, lower, lower);
  check(tie + small_step, upper, upper);
  for (const auto rounding : oracle::roundings) {
    const Result<F> result = parse_whole<F>(decimal_text(high), {.rounding = rounding});
    if (result.bits != upper || result.flags != Flags{})
      FAIL_CHECK(decimal_text(high) << ": " << +result.bits);
  }
}

TEST_CASE("every format: codes, ties and their sides, in every direction") {
  for_each_format([]<const Format & F> {
    CAPTURE(name_of(F));
    if constexpr (F.width() <= 8) {
      for (int lower = 0; lower < max_finite_bits<F>; ++lower) check_between<F>(static_cast<Bits<F>>(lower));
    } else {
      oracle::RandomBits random(1);
      for (int i = 0; i < 300; ++i)
        check_between<F>(static_cast<Bits<F>>(random.next() % max_finite_bits<F>));
      for (int i = 0; i < 8; ++i) {
        check_between<F>(static_cast<Bits<F>>(i));
        check_between<F>(static_cast<Bits<F>>(min_normal_bits<F> - 4 + i));
        check_between<F>(static_cast<Bits<F>>(max_finite_bits<F> - 1 - i));
      }
    }
  });
}

template <typename Float>
using BitsOf = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

/// A decimal near a border or a tie of the numbers of type Float, or of random digits.
template <typename Float>
std::string hard_decimal(oracle::RandomBits& random) {
  constexpr bool is_float = sizeof(Float) == 4;
  oracle::HardCases<BitsOf<Float>, is_float ? 23 : 52> hard_cases(random.next());
  const auto code = static_cast<BitsOf<Float>>(hard_cases.next() << 1 >> 1);
  const auto value = std::bit_cast<Float>(code), next = std::bit_cast<Float>(code + 1);
  switch (random.below(std::isfinite(value) && std::isfinite(next) ? 6 : 2)) {
    case 0: {
      std::string text = std::to_string(random.next()).substr(0, 1 + random.below(19));
      if (random.below(2) == 0) text.insert(random.below(static_cast<int>(text.size())), ".");
      return text + 'e' + std::to_string(random.below(is_float ? 100 : 700) - (is_float ? 60 : 360));
    }
    case 1: {
      std::string text(1, '0' + static_cast<char>(random.below(10)));
      text += '.';
      for (int i = random.below(900); i > 0; --i) text += static_cast<char>('0' + random.below(10));
      return text + 'e' + std::to_string(random.below(is_float ? 85 : 640) - (is_float ? 46 : 330));
    }
    case 2: {
      std::array<char, 60> printed{};
      std::snprintf(printed.data(), printed.size(), "%.*e", random.below(25), static_cast<double>(value));
      return printed.data();
    }
    default: {
      const Rational tie = (oracle::exact_value(double{value}) + oracle::exact_value(double{next})) / 2;
      const int side = random.below(3);
      if (side == 0) return decimal_text(tie);
      if (side == 1) return with_late_one(decimal_text(tie));
      return decimal_text(tie - oracle::power_of_ten(-oracle::decimal_places(tie)));
    }
  }
}

struct Direction {
  int host;
  Rounding rounding;
};
constexpr std::array<Direction, 4> host_directions{{{FE_TONEAREST, Rounding::nearest_even},
                                                    {FE_TOWARDZERO, Rounding::toward_zero},
                                                    {FE_UPWARD, Rounding::toward_positive},
                                                    {FE_DOWNWARD, Rounding::toward_negative}}};

template <const Format& F, typename Float>
void check_against_host(int count, Float (*host_parse)(const char*, char**)) {
  oracle::RandomBits random(2);
  int different = 0;
  for (int i = 0; i < count; ++i) {
    std::string text = hard_decimal<Float>(random);
    if (random.below(2) == 0) text.insert(0, "-");
    for (const Direction& direction : host_directions) {
      std::fesetround(direction.host);
      const Float expected = host_parse(text.c_str(), nullptr);
      std::fesetround(FE_TONEAREST);
      const Bits<F> bits = parse_whole<F>(text, {.rounding = direction.rounding}).bits;
      if (bits != std::bit_cast<Bits<F>>(expected) && ++different <= 5) MESSAGE(text << ": " << bits);
    }
  }
  CHECK(different == 0);
}

TEST_CASE("binary64 and binary32 equal strtod and strtof in their four directions") {
  check_against_host<binary64, double>(8'000, std::strtod);
  check_against_host<binary32, float>(16'000, std::strtof);
}

TEST_CASE("binary16: known traps") {
  CHECK(parse_whole<binary16>("1.00048828124999999999999999999").bits == 0x3c00);
  CHECK(parse_whole<binary16>("1.00048828125").bits == 0x3c00);
  CHECK(parse_whole<binary16>("1.00048828125000000000000000001").bits == 0x3c01);
  CHECK(parse_whole<binary16>("1.00146484375").bits == 0x3c02);
  CHECK(parse_whole<binary16>("65519.9999999999").bits == 0x7bff);
  CHECK(parse_whole<binary16>("65520").bits == 0x7c00);
  CHECK(parse_whole<binary16>("65504") == Result<binary16>{.bits = 0x7bff, .flags = {}});
  // 2^-25, the tie between 0 and the smallest subnormal, and 3 * 2^-25.
  CHECK(parse_whole<binary16>("0.0000000298023223876953125").bits == 0);
  CHECK(parse_whole<binary16>("0.0000000298023223876953125000000001").bits == 1);
  CHECK(parse_whole<binary16>("8.94069671630859375e-8").bits == 2);
  CHECK(parse_whole<binary16>("8.940696716308593749e-8").bits == 1);
}

TEST_CASE("exponents of any size, and digits of any number") {
  const Flags overflow{.inexact = true, .overflow = true}, underflow{.inexact = true, .underflow = true};
  const std::string zeros(1'000'000, '0');
  for (const std::string& large : {"1e999999999999"s, "1e99999999999999999999999999"s, "0x1p999999999999"s,
                                   "0x1p99999999999999999999999999"s, "1" + zeros, "0x1" + zeros, "1e19"s}) {
    CAPTURE(large.substr(0, 40));
    CHECK(parse_whole<binary16>(large) == Result<binary16>{.bits = 0x7c00, .flags = overflow});
    CHECK(parse_whole<binary16>('-' + large) == Result<binary16>{.bits = 0xfc00, .flags = overflow});
    CHECK(parse_whole<binary16>(large, {Rounding::toward_zero}).bits == 0x7bff);
    CHECK(parse_whole<binary16>(large, {.saturate = true}).bits == 0x7bff);
    CHECK(parse_whole<e4m3>(large) == Result<e4m3>{.bits = 0x7f, .flags = overflow});
    CHECK(parse_whole<e2m1>(large) == Result<e2m1>{.bits = 7, .flags = overflow});
  }
  for (const std::string& small :
       {"1e-999999999999"s, "1e-99999999999999999999999999"s, "0x1p-999999999999"s,
        "0x1p-99999999999999999999999999"s, "." + zeros + "1", "0x." + zeros + "1"}) {
    CAPTURE(small.substr(0, 40));
    CHECK(parse_whole<binary16>(small) == Result<binary16>{.bits = 0, .flags = underflow});
    CHECK(parse_whole<binary16>('-' + small) == Result<binary16>{.bits = 0x8000, .flags = underflow});
    CHECK(parse_whole<binary16>(small, {Rounding::toward_positive}).bits == 1);
    CHECK(parse_whole<binary64>(small, {Rounding::toward_positive}).bits == 1);
  }
  for (const std::string& one :
       {"1" + zeros + "e-1000000", "." + zeros + "1e1000001", "0x1" + zeros + "p-4000000",
        "0x." + zeros + "1p4000004", zeros + "1", "1." + zeros}) {
    CHECK(parse_whole<binary16>(one) == Result<binary16>{.bits = 0x3c00, .flags = {}});
  }
  for (const auto zero : {"0e999999999999", "0e-999999999999", "0x0p99999999999", "0.000e5", "000"}) {
    CHECK(parse_whole<binary16>(zero) == Result<binary16>{.bits = 0, .flags = {}});
    CHECK(parse_whole<binary16>(std::string("-") + zero) == Result<binary16>{.bits = 0x8000, .flags = {}});
  }
}

TEST_CASE("stochastic rounding compares 64 bits of the fraction, exactly") {
  oracle::RandomBits random(3);
  const Rational unit(oracle::Integer(1), oracle::Integer(1) << 64);
  const Rational tiny(oracle::Integer(1), oracle::Integer(1) << 400);
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto lower = static_cast<std::uint16_t>(random.below(i % 2 == 0 ? 0x7bff : 0x0400));
    const Rational low = oracle::exact_value(lower);
    const Rational gap = oracle::exact_value(static_cast<std::uint16_t>(lower + 1)) - low;
    const std::uint64_t leading = random.next() | 1;
    const auto away = [&](const Rational& fraction, std::uint64_t random_bits) {
      const Attributes attributes{.rounding = Rounding::stochastic, .random_bits = random_bits};
      return parse_whole<binary16>(decimal_text(low + gap * fraction), attributes).bits != lower;
    };
    const Rational fraction = unit * leading;
    wrong += away(fraction, leading) || !away(fraction, leading - 1);
    wrong += away(fraction + tiny, leading) || !away(fraction + tiny, leading - 1);
    wrong += away(fraction - tiny, leading - 1);
  }
  CHECK(wrong == 0);
}

TEST_CASE("tininess, flushing and saturation are those of round_pack") {
  const Rational rounds_to_normal = Rational(1, 1 << 14) - Rational(1, 1 << 26);
  const std::string text = decimal_text(rounds_to_normal);
  CHECK(parse_whole<binary16>(text) == Result<binary16>{.bits = 0x0400, .flags = {.inexact = true}});
  CHECK(parse_whole<binary16>(text, {.tininess = Tininess::before_rounding}).flags.underflow);
  // 11 digits below 2^-14 end at 2^-25: with the fraction k * 2^-64 of that and a little more, stochastic
  // rounding stays below 2^-14 iff k <= random_bits.
  const std::uint64_t k = 0x123456789abcdef0;
  const Rational last_place(1, 1 << 25), unit(oracle::Integer(1), oracle::Integer(1) << 64);
  const std::string below_normal =
      decimal_text(Rational(1, 1 << 14) - last_place + last_place * unit * (k + unit));
  CHECK(parse_whole<binary16>(below_normal, {Rounding::stochastic, k}).flags.underflow);
  CHECK_FALSE(parse_whole<binary16>(below_normal, {Rounding::stochastic, k - 1}).flags.underflow);
  const Result<binary16> flushed = parse_whole<binary16>("-6e-5", {.flush_to_zero = true});
  CHECK(flushed == Result<binary16>{.bits = 0x8000, .flags = {.inexact = true, .underflow = true}});
  CHECK(parse_whole<binary16>("-65520", {.saturate = true}).bits == 0xfbff);
  CHECK(parse_whole<binary16>("-inf", {.saturate = true}).bits == 0xfbff);
}

TEST_CASE("what a format does not have") {
  const Flags invalid{.invalid = true}, overflow{.inexact = true, .overflow = true};
  CHECK(parse_whole<e2m1>("nan") == Result<e2m1>{.bits = 0, .flags = invalid});
  CHECK(parse_whole<e2m1>("-inf") == Result<e2m1>{.bits = 0xf, .flags = overflow});
  CHECK(parse_whole<e4m3>("-inf") == Result<e4m3>{.bits = 0xff, .flags = overflow});
  CHECK(parse_whole<e4m3>("-nan") == Result<e4m3>{.bits = 0xff, .flags = {}});
  CHECK(parse_whole<e4m3_fnuz>("-nan") == Result<e4m3_fnuz>{.bits = 0x80, .flags = {}});
  CHECK(parse_whole<e4m3_fnuz>("-0") == Result<e4m3_fnuz>{.bits = 0, .flags = {}});
  CHECK(parse_whole<e8m0>("-1") == Result<e8m0>{.bits = 0xff, .flags = invalid});
  CHECK(parse_whole<e8m0>("-inf") == Result<e8m0>{.bits = 0xff, .flags = invalid});
  CHECK(parse_whole<e8m0>("0") == Result<e8m0>{.bits = 0, .flags = {.inexact = true, .underflow = true}});
}

struct Reading {
  std::string_view text;
  std::size_t read;
  std::uint16_t bits;
};

TEST_CASE("what is read, and how far") {
  for (const Reading& reading : std::vector<Reading>{
           {"1.5", 3, 0x3e00},
           {"+1.5", 4, 0x3e00},
           {"-1.5x", 4, 0xbe00},
           {"1.", 2, 0x3c00},
           {".5", 2, 0x3800},
           {"1.5.5", 3, 0x3e00},
           {"1e", 1, 0x3c00},
           {"1e+", 1, 0x3c00},
           {"1E+1", 4, 0x4900},
           {"10e-1 ", 5, 0x3c00},
           {"1e1.5", 3, 0x4900},
           {"1p3", 1, 0x3c00},
           {"0x1.8p-3", 8, 0x3200},
           {"0X1.8P-3", 8, 0x3200},
           {"0x1.8", 5, 0x3e00},
           {"0x.8", 4, 0x3800},
           {"0xAp1", 5, 0x4d00},
           {"0x1p", 3, 0x3c00},
           {"0x", 1, 0x0000},
           {"0x.p1", 1, 0x0000},
           {"-0x", 2, 0x8000},
           {"0x1e1", 5, 0x5f84},
           {"inf", 3, 0x7c00},
           {"-InFiNiTy", 9, 0xfc00},
           {"infinit", 3, 0x7c00},
           {"nan", 3, 0x7e00},
           {"-NaN", 4, 0xfe00},
           {"nan(5)", 6, 0x7e05},
           {"nan(0x1ff)", 10, 0x7fff},
           {"NAN(511)", 8, 0x7fff},
           {"nan(0)", 6, 0x7e00},
           {"-nan(0X1F)", 10, 0xfe1f},
           {"nan()", 3, 0x7e00},
           {"nan(5", 3, 0x7e00},
           {"nan(5x)", 3, 0x7e00},
           {"snan", 4, 0x7d00},
           {"-sNaN(1)", 8, 0xfc01},
           {"snan(0x1ff)", 11, 0x7dff},
           {"nan(0x000000000000000000005)", 28, 0x7e05},
           {"1.5\0001"sv, 3, 0x3e00},
           {"1,5", 1, 0x3c00},
       }) {
    CAPTURE(reading.text);
    const ParseResult<binary16> result = parse<binary16>(reading.text);
    CHECK(result.error == std::errc{});
    CHECK(result.end - reading.text.data() == static_cast<std::ptrdiff_t>(reading.read));
    CHECK(result.bits == reading.bits);
  }
}

TEST_CASE("binary64: arbitrary texts are read as far as by strtod, with the same value") {
  constexpr std::string_view alphabet = "0123789.....eExXpP+-afAFinINtyTY";
  oracle::RandomBits random(5);
  int different = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = random.below(3) == 0 ? "0x" : "";
    for (int size = random.below(10); size > 0; --size)
      text += alphabet[static_cast<std::size_t>(random.below(static_cast<int>(alphabet.size())))];
    char* end = nullptr;
    const double expected = std::strtod(text.c_str(), &end);
    const ParseResult<binary64> result = parse<binary64>(text);
    const bool number = result.error == std::errc{};
    const bool equal = number ? result.end == text.data() + (end - text.c_str()) &&
                                    (std::isnan(expected) || std::bit_cast<double>(result.bits) == expected)
                              : end == text.c_str();
    if (!equal && ++different <= 5) MESSAGE(text << ": " << std::bit_cast<double>(result.bits));
  }
  CHECK(different == 0);
}

TEST_CASE("texts that start with no number, and where they fail") {
  for (const Reading& reading : std::vector<Reading>{{"", 0, 0},
                                                     {" 1", 0, 0},
                                                     {"+", 1, 0},
                                                     {"--1", 1, 0},
                                                     {"x1", 0, 0},
                                                     {".", 0, 0},
                                                     {"-.e5", 1, 0},
                                                     {"e5", 0, 0},
                                                     {"in", 0, 0},
                                                     {"-sna", 1, 0},
                                                     {"na", 0, 0}}) {
    CAPTURE(reading.text);
    const ParseResult<binary16> result = parse<binary16>(reading.text);
    CHECK(result.error == std::errc::invalid_argument);
    CHECK(result.end - reading.text.data() == static_cast<std::ptrdiff_t>(reading.read));
  }
  CHECK(parse<binary16>(std::string_view()).error == std::errc::invalid_argument);
}

TEST_CASE("payloads that do not fit") {
  const auto error = []<const Format & F>(std::string_view text) { return parse<F>(text).error; };
  for (const auto text :
       {"nan(512)", "nan(0x200)", "-nan(99999999999999999999999)", "snan(0)", "snan(512)"}) {
    CAPTURE(text);
    CHECK(error.operator()<binary16>(text) == std::errc::result_out_of_range);
  }
  CHECK(parse<binary16>("-nan(512)").end == std::string_view("-nan(512)").data() + 4);
  CHECK(error.operator()<binary64>("nan(0x7ffffffffffff)") == std::errc{});
  CHECK(error.operator()<binary64>("nan(0x8000000000000)") == std::errc::result_out_of_range);
  CHECK(parse<e5m2>("snan(1)").bits == 0x7d);
  CHECK(error.operator()<e5m2>("nan(2)") == std::errc::result_out_of_range);
  CHECK(error.operator()<e4m3>("nan(0)") == std::errc{});
  CHECK(error.operator()<e4m3>("nan(1)") == std::errc::result_out_of_range);
  CHECK(error.operator()<e4m3>("snan") == std::errc::result_out_of_range);
  CHECK(error.operator()<e2m1>("nan(1)") == std::errc::result_out_of_range);
}

TEST_CASE("fields that are none") {
  const auto fails_at = [](std::string_view text) {
    const ParseResult<binary16> result = parse_fields<binary16>(text);
    return result.error == std::errc::invalid_argument ? result.end - text.data() : -1;
  };
  CHECK(parse_fields<binary16>("0 10100 1010000000").bits == 0x5280);
  CHECK(fails_at("0 10100 1010000000") == -1);
  CHECK(fails_at("") == 0);
  CHECK(fails_at("010100 1010000000") == 1);
  CHECK(fails_at("0 1010 01010000000") == 6);
  CHECK(fails_at("0 10100 10100") == 13);
  CHECK(fails_at("0 10200 1010000000") == 4);
  CHECK(*parse_fields<binary16>("0 10100 1010000000x").end == 'x');
}

}  // namespace
}  // namespace fp16
