#include "fp16/text.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "fp16/bits.h"
#include "fp16/codec.h"
#include "fp16/formats.h"
#include "fp16/parse.h"
#include "tests/oracle/decimal_text.h"
#include "tests/oracle/exact_half.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

using oracle::Integer;
using oracle::Rational;

#ifndef __clang__  // to which a string of GCC 12 is no constant
static_assert(to_shortest<binary16>(0x2e66) == "0.1");
static_assert(to_exact<binary16>(0x2e66) == "0.0999755859375");
static_assert(to_hex<binary16>(0x2e66) == "0x1.998p-4");
static_assert(to_fields<binary16>(0x5280) == "0 10100 1010000000");
#endif

/// Calls visit(code) for every code of F, or for many of them if it has more than 16 bits.
template <const Format& F, typename Visit>
void for_codes(Visit visit) {
  if constexpr (F.width() <= 16) {
    for (std::uint32_t code = 0; code < 1u << F.width(); ++code) visit(static_cast<Bits<F>>(code));
  } else {
    constexpr Bits<F> mask = static_cast<Bits<F>>(~std::uint64_t{0} >> (64 - F.width()));
    oracle::HardCases<Bits<F>, F.trailing_bits()> codes(1);
    for (int i = 0; i < 5'000; ++i) visit(static_cast<Bits<F>>(codes.next() & mask));
  }
}

TEST_CASE("every format: all four texts read back as the same code, without flags but inexact") {
  for_each_format([]<const Format & F> {
    int wrong = 0;
    for_codes<F>([&](Bits<F> code) {
      const auto reads_back = [&](const ParseResult<F>& result, const std::string& text, bool exact) {
        const bool whole = result.error == std::errc{} && result.end == text.data() + text.size();
        const Flags flags{.inexact = !exact && result.flags.inexact,
                          .underflow = !exact && result.flags.underflow};
        return whole && result.bits == code && result.flags == flags;
      };
      const std::string shortest = to_shortest<F>(code), exact = to_exact<F>(code), hex = to_hex<F>(code),
                        fields = to_fields<F>(code);
      if (!reads_back(parse<F>(shortest), shortest, false) || !reads_back(parse<F>(exact), exact, true) ||
          !reads_back(parse<F>(hex), hex, true) || !reads_back(parse_fields<F>(fields), fields, true)) {
        if (++wrong <= 5) MESSAGE(fields << ": " << shortest << ", " << exact << ", " << hex);
      }
    });
    CAPTURE(name_of(F));
    CHECK(wrong == 0);
  });
}

TEST_CASE("every format: the exact text is the expansion of the value by big integers") {
  for_each_format([]<const Format & F> {
    int wrong = 0, count = 0;
    for_codes<F>([&](Bits<F> code) {
      if (!is_finite<F>(code) || is_zero<F>(code) || (F.width() > 8 && F != binary16 && ++count > 1'000))
        return;
      const std::string expected = oracle::decimal_text(oracle::exact_value(decode<F>(code)));
      if (to_exact<F>(code) != expected && ++wrong <= 5) MESSAGE(to_exact<F>(code) << ", not " << expected);
    });
    CAPTURE(name_of(F));
    CHECK(wrong == 0);
  });
}

/// The numbers that round to a positive code (nearest-even).
struct RoundingInterval {
  Rational low, high;
  bool closed;

  bool contains(const Rational& value) const {
    return closed ? low <= value && value <= high : low < value && value < high;
  }
};

template <const Format& F>
RoundingInterval rounding_interval(Bits<F> code) {
  const auto exact = [](Bits<F> bits) { return oracle::exact_value(decode<F>(bits)); };
  const Rational value = exact(code);
  const Rational below = code == 0 ? Rational(0) : exact(static_cast<Bits<F>>(code - 1));
  // Beyond the largest number the spacing goes on; with a precision of 1 it doubles at each.
  const bool largest = code == max_finite_bits<F>;
  const Rational above = !largest           ? exact(static_cast<Bits<F>>(code + 1))
                         : F.precision == 1 ? Rational(2 * value)
                                            : Rational(2 * value - below);
  return {.low = code == 0 ? Rational(0) : Rational((below + value) / 2),
          .high = (value + above) / 2,
          .closed = code % 2 == 0 && code != 0};
}

/// The value of the decimal with the fewest digits that rounds to a positive code, by trying all of one
/// digit, of two, and so on; of several the nearest, of two equally near the even one.
template <const Format& F>
Rational shortest_value(Bits<F> code) {
  const Rational value = oracle::exact_value(decode<F>(code));
  const RoundingInterval interval = rounding_interval<F>(code);
  const int leading = static_cast<int>(std::floor(std::log10(decode<F>(code))));
  for (int digits = 1;; ++digits) {
    const Integer smallest = boost::multiprecision::pow(Integer(10), static_cast<unsigned>(digits - 1));
    std::optional<Rational> nearest;
    for (int exponent = leading - digits; exponent <= leading - digits + 2; ++exponent) {
      const Rational step = oracle::power_of_ten(exponent);
      const Rational lowest = interval.low / step, highest = interval.high / step;
      Integer i = std::max(smallest, Integer(numerator(lowest) / denominator(lowest)));
      for (; i < 10 * smallest && i <= highest; ++i) {
        const Rational candidate = step * i;
        if (!interval.contains(candidate)) continue;
        const Rational distance = abs(candidate - value);
        const Rational least = nearest ? Rational(abs(*nearest - value)) : Rational(distance + 1);
        if (distance < least || (distance == least && i % 2 == 0)) nearest = candidate;
      }
    }
    if (nearest) return *nearest;
  }
}

/// `count` codes of F, or all if there are no more.
template <const Format& F>
void check_shortest(std::uint64_t count) {
  const std::uint64_t stride = max_finite_bits<F> / count + 1;
  int wrong = 0;
  for (std::uint64_t code = F.has_zero(); code <= max_finite_bits<F>; code += stride) {
    const auto bits = static_cast<Bits<F>>(code);
    const std::string text = to_shortest<F>(bits);
    const bool whole = text.find_first_of(".e") == std::string::npos;
    const Rational expected = whole ? oracle::exact_value(decode<F>(bits)) : shortest_value<F>(bits);
    const bool whole_is_due = !whole || shortest_value<F>(bits) >= 1;
    const bool equal = oracle::decimal_value(text) == expected && whole_is_due;
    if (!equal && ++wrong <= 5) MESSAGE(text << ", not " << oracle::decimal_text(expected));
    if constexpr (F.is_signed()) {
      if (to_shortest<F>(with_sign<F>(bits, true)) != '-' + text) FAIL_CHECK("sign of " << text);
    }
  }
  CAPTURE(name_of(F));
  CHECK(wrong == 0);
}

TEST_CASE("no decimal shorter than the shortest text rounds to its code, and none as short is nearer") {
  for_each_format(
      []<const Format & F> { check_shortest<F>(F.width() <= 8 || F == binary16 ? 1 << 16 : 1'000); });
}

template <const Format& F, typename Float>
void check_against_to_chars(Float value) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  const std::string_view expected(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  if (to_shortest<F>(std::bit_cast<Bits<F>>(value)) != expected)
    FAIL_CHECK(to_shortest<F>(std::bit_cast<Bits<F>>(value)) << ", not " << expected);
}

TEST_CASE("binary64 and binary32: the shortest text is that of std::to_chars") {
  oracle::HardDoubles doubles(2);
  oracle::HardFloats floats(3);
  oracle::RandomBits random(4);
  for (int i = 0; i < 40'000; ++i) {
    const auto wide = std::bit_cast<double>(doubles.next());
    if (!std::isnan(wide)) check_against_to_chars<binary64>(wide);
    const auto narrow = std::bit_cast<float>(floats.next());
    if (!std::isnan(narrow)) check_against_to_chars<binary32>(narrow);
  }
  // Few digits, whole numbers and small ones: where the layout changes.
  for (int i = 0; i < 20'000; ++i) {
    const int digits = random.below(i % 2 == 0 ? 100 : 100'000'000);
    const double value = digits * std::pow(10.0, random.below(40) - 20);
    check_against_to_chars<binary64>(value);
    check_against_to_chars<binary32>(static_cast<float>(value));
  }
}

TEST_CASE("binary16: the hexadecimal text of all finite codes is that of printf") {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    if (!is_finite<binary16>(bits)) continue;
    std::array<char, 40> printed{};
    std::snprintf(printed.data(), printed.size(), "%a", decode<binary16>(bits));
    if (to_hex<binary16>(bits) != printed.data())
      FAIL_CHECK(to_hex<binary16>(bits) << ", not " << printed.data());
  }
}

TEST_CASE("texts as they look") {
  CHECK(to_shortest<binary16>(0x7bff) == "65504");
  CHECK(to_shortest<binary16>(0x0001) == "6e-08");
  CHECK(to_shortest<binary16>(0x0400) == "6.104e-05");
  CHECK(to_shortest<binary16>(0x63d1) == "1000.5");
  CHECK(to_shortest<binary16>(0x8000) == "-0");
  CHECK(to_shortest<binary16>(0xfc00) == "-inf");
  CHECK(to_shortest<binary16>(0x7e00) == "nan");
  CHECK(to_shortest<binary16>(0xfe1f) == "-nan(0x1f)");
  CHECK(to_exact<binary16>(0x7d00) == "snan(0x100)");
  CHECK(to_exact<binary16>(0x0001) == "0.000000059604644775390625");
  CHECK(to_exact<binary16>(0xfbff) == "-65504");
  CHECK(to_exact<binary64>(1).size() == 1076);
  CHECK(to_exact<binary64>(max_finite_bits<binary64>).size() == 309);
  CHECK(to_hex<binary16>(0x8000) == "-0x0p+0");
  CHECK(to_hex<binary16>(0x0001) == "0x1p-24");
  CHECK(to_hex<binary64>(1) == "0x1p-1074");
  CHECK(to_hex<binary16>(0x7c00) == "inf");
  CHECK(to_shortest<e4m3>(0x7e) == "448");
  CHECK(to_shortest<e4m3>(0xff) == "-nan");
  CHECK(to_shortest<e4m3_fnuz>(0x80) == "nan");
  CHECK(to_shortest<e8m0>(0x00) == "6e-39");
  CHECK(to_exact<e8m0>(0xfe) == "170141183460469231731687303715884105728");
  CHECK(to_fields<binary16>(0xbc00) == "1 01111 0000000000");
  CHECK(to_fields<e2m1>(0xb) == "1 01 1");
  CHECK(to_fields<e8m0>(0x7f) == "01111111");
  CHECK(to_fields<tf32>(0x3f800000 >> 13) == "0 01111111 0000000000");
}

}  // namespace
}  // namespace fp16
