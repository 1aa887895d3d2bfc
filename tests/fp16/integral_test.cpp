#include "fp16/integral.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

static_assert(round_to_integral_exact<binary16>(0x3e00) == Result<binary16>{0x4000, {.inexact = true}});
static_assert(round_to_integral<binary16>(0x4100) == Result<binary16>{0x4000, {}});
static_assert(round_to_integral<binary16>(0xb800) == Result<binary16>{0x8000, {}});
static_assert(round_to_integral<e2m3>(0x1f) == Result<e2m3>{0x1f, {.inexact = true, .overflow = true}});
static_assert(modf<binary16>(0xc100) == Parts<binary16>{0xc000, 0xb800, {}});
static_assert(modf<binary16>(0xfc00) == Parts<binary16>{0xfc00, 0x8000, {}});

using Indefinite = IntegerResult<std::int16_t>;
static_assert(to_integer<std::int16_t, binary16>(0x7e00) == Indefinite{-32768, {.invalid = true}});
static_assert(to_integer<std::int16_t, binary16>(0x7bff) == Indefinite{-32768, {.invalid = true}});
static_assert(to_integer<std::int16_t, binary16>(0x7bff, {.saturate = true}) ==
              Indefinite{32767, {.invalid = true}});
static_assert(to_integer<std::int16_t, binary16>(0xfe00, {.saturate = true}) ==
              Indefinite{0, {.invalid = true}});
static_assert(to_integer<std::uint8_t, binary16>(0x7c00).value == 255);
static_assert(to_integer<std::uint64_t, binary64>(0x43f0000000000000).flags.invalid);
static_assert(to_integer_exact<int, binary16>(0x3c01) == IntegerResult<int>{1, {.inexact = true}});

/// A double's neighbouring integer by the C++ library; exact for every double.
double rounded_by_library(double x, const Attributes& attributes) {
  const double away = x < 0 ? std::floor(x) : std::ceil(x);
  switch (attributes.rounding) {
    case Rounding::nearest_even:
      return std::nearbyint(x);
    case Rounding::nearest_away:
      return std::round(x);
    case Rounding::toward_zero:
      return std::trunc(x);
    case Rounding::toward_positive:
      return std::ceil(x);
    case Rounding::toward_negative:
      return std::floor(x);
    case Rounding::to_odd:
      return std::fmod(std::trunc(x), 2) == 0 ? away : std::trunc(x);
    case Rounding::stochastic: {
      const double fraction = std::fabs(x) - std::trunc(std::fabs(x));
      return static_cast<std::uint64_t>(std::ldexp(fraction, 64)) > attributes.random_bits ? away
                                                                                           : std::trunc(x);
    }
  }
  return x;
}

std::vector<Attributes> all_roundings(std::uint64_t random_bits) {
  std::vector<Attributes> all;
  for (const Rounding rounding : oracle::roundings) all.push_back({.rounding = rounding});
  for (const std::uint64_t bits : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63, random_bits})
    all.push_back({.rounding = Rounding::stochastic, .random_bits = bits});
  return all;
}

/// The exact value of a number that is not infinite.
template <const Format& F>
oracle::Answer expected_integral(double x, const Attributes& attributes) {
  const double integer = rounded_by_library(x, attributes);
  oracle::Answer answer =
      oracle::Placed(oracle::exact<F>(), oracle::from_double(std::copysign(integer, x))).rounded({});
  answer.inexact |= integer != x;
  return answer;
}

template <const Format& F>
void compare_rounding(oracle::Comparison& comparison, std::uint64_t code, const Attributes& attributes) {
  const auto a = static_cast<Bits<F>>(code);
  oracle::Answer expected = expected_integral<F>(oracle::exact<F>().value(code), attributes);
  comparison.equal(oracle::as_answer<F>(round_to_integral_exact<F>(a, attributes)), expected, "exact",
                   {code});
  expected.inexact = expected.overflow;
  comparison.equal(oracle::as_answer<F>(round_to_integral<F>(a, attributes)), expected, "", {code});
}

template <const Format& F>
bool is_number(std::uint64_t code) {
  return std::isfinite(oracle::exact<F>().value(code));
}

TEST_CASE("rounding to integers in all formats of at most 16 bits, all codes and roundings") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 16 && F.has_arithmetic()) {
      oracle::Comparison comparison("round_to_integral in " + std::string(name_of(F)));
      oracle::RandomBits random(61);
      std::uint64_t numbers = 0;
      for (std::uint64_t code = 0; code < oracle::exact<F>().codes(); ++code) {
        if (!is_number<F>(code)) continue;
        ++numbers;
        for (const Attributes& attributes : all_roundings(random.next()))
          compare_rounding<F>(comparison, code, attributes);
      }
      comparison.finish(numbers * 10 * 2);
    }
  });
}

TEST_CASE("rounding to integers of wide numbers near integers") {
  constexpr int numbers = 20'000;
  oracle::RandomBits random(62);
  oracle::Comparison comparison("round_to_integral in binary32 and binary64");
  const auto hard = [&](auto bits, int trailing_bits, int bias) {
    using UInt = decltype(bits);
    const UInt exponent = static_cast<UInt>(bias - 3 + random.below(trailing_bits + 6));
    const UInt ones = static_cast<UInt>(~UInt{0}) << random.below(trailing_bits);
    const UInt trailing = (random.below(2) == 0 ? bits : bits & ones) & ((UInt{1} << trailing_bits) - 1);
    return static_cast<UInt>((exponent << trailing_bits) + trailing +
                             static_cast<UInt>(random.below(3) - 1)) |
           static_cast<UInt>(bits >> (8 * sizeof(UInt) - 1) << (8 * sizeof(UInt) - 1));
  };
  for (int i = 0; i < numbers; ++i) {
    const std::uint64_t bits = random.next();
    const std::uint32_t single = hard(static_cast<std::uint32_t>(bits), 23, 127);
    const std::uint64_t wide = hard(bits, 52, 1023);
    for (const Attributes& attributes : all_roundings(random.next())) {
      compare_rounding<binary32>(comparison, single, attributes);
      compare_rounding<binary64>(comparison, wide, attributes);
    }
  }
  comparison.finish(numbers * 10 * 4);
}

TEST_CASE("rounding to integers of infinities and NaNs") {
  CHECK(round_to_integral_exact<binary16>(0xfc00) == Result<binary16>{0xfc00, {}});
  CHECK(round_to_integral_exact<binary16>(0xfc00, {.saturate = true}) ==
        Result<binary16>{0xfbff, {.inexact = true, .overflow = true}});
  CHECK(round_to_integral<binary16>(0x7d01) == Result<binary16>{0x7f01, {.invalid = true}});
  CHECK(round_to_integral<binary16>(0x0001, {Rounding::toward_positive}).bits == 0x3c00);
  CHECK(round_to_integral<binary16>(0x0001, {.rounding = Rounding::toward_positive,
                                             .denormals_are_zero = true}) == Result<binary16>{0x0000, {}});
  CHECK(round_to_integral<e4m3_fnuz>(0x81) == Result<e4m3_fnuz>{0x00, {}});
}

template <typename Integer>
IntegerResult<Integer> expected_integer(double x, const Attributes& attributes) {
  using Limits = std::numeric_limits<Integer>;
  const double integer = rounded_by_library(x, attributes);
  const bool fits = static_cast<long double>(integer) >= static_cast<long double>(Limits::min()) &&
                    static_cast<long double>(integer) <= static_cast<long double>(Limits::max());
  if (fits) return {static_cast<Integer>(integer), {.inexact = integer != x}};
  if (!attributes.saturate) return {Limits::is_signed ? Limits::min() : Limits::max(), {.invalid = true}};
  return {std::isnan(x) ? Integer{0} : x < 0 ? Limits::min() : Limits::max(), {.invalid = true}};
}

/// How many of the conversions of a code to integers of one type are wrong.
template <typename Integer, const Format& F>
int wrong_integers(std::uint64_t code, Attributes attributes) {
  const auto a = static_cast<Bits<F>>(code);
  int wrong = 0;
  for (const bool saturate : {false, true}) {
    attributes.saturate = saturate;
    IntegerResult<Integer> expected = expected_integer<Integer>(oracle::exact<F>().value(code), attributes);
    wrong += to_integer_exact<Integer, F>(a, attributes) != expected;
    expected.flags.inexact = false;
    wrong += to_integer<Integer, F>(a, attributes) != expected;
  }
  return wrong;
}

template <const Format& F>
int wrong_integers_of_all_types(std::uint64_t code, const Attributes& attributes) {
  return wrong_integers<std::int8_t, F>(code, attributes) +
         wrong_integers<std::uint8_t, F>(code, attributes) +
         wrong_integers<std::int16_t, F>(code, attributes) +
         wrong_integers<std::uint16_t, F>(code, attributes) +
         wrong_integers<std::int32_t, F>(code, attributes) +
         wrong_integers<std::uint32_t, F>(code, attributes) +
         wrong_integers<std::int64_t, F>(code, attributes) +
         wrong_integers<std::uint64_t, F>(code, attributes);
}

TEST_CASE("conversions to integers of 8 to 64 bits from all codes of the formats of at most 16 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 16) {
      CAPTURE(name_of(F));
      oracle::RandomBits random(63);
      int wrong = 0;
      for (std::uint64_t code = 0; code < oracle::exact<F>().codes(); ++code) {
        for (const Attributes& attributes : all_roundings(random.next()))
          wrong += wrong_integers_of_all_types<F>(code, attributes);
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("conversions to integers from wide numbers around the limits of every integer") {
  oracle::RandomBits random(64);
  int wrong = 0;
  for (const double limit : {0.0, 0x1p7, 0x1p8, 0x1p15, 0x1p16, 0x1p31, 0x1p32, 0x1p63, 0x1p64, 0x1p100}) {
    for (const double sign : {-1.0, 1.0}) {
      for (int i = 0; i < 2'000; ++i) {
        const double offset = (random.below(17) - 8) * (i % 2 == 0 ? 0.25 : std::ldexp(limit, -23));
        const double x = sign * (limit + offset);
        for (const Attributes& attributes : all_roundings(random.next())) {
          wrong += wrong_integers_of_all_types<binary32>(std::bit_cast<std::uint32_t>(static_cast<float>(x)),
                                                         attributes);
          wrong += wrong_integers_of_all_types<binary64>(std::bit_cast<std::uint64_t>(x), attributes);
        }
      }
    }
  }
  CHECK(wrong == 0);
}

template <const Format& F, typename Integer>
void compare_from_integer(oracle::Comparison& comparison, Integer value, std::uint64_t index) {
  const bool negative = value < 0;
  const std::uint64_t magnitude =
      negative ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  oracle::agree<F>(comparison, oracle::from_integer(negative, magnitude), oracle::Options::of_case(index),
                   {magnitude},
                   [&](const Attributes& attributes) { return from_integer<F>(value, attributes); });
}

TEST_CASE("conversions from all integers of 8 and 16 bits to the formats of at most 16 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 16) {
      oracle::Comparison comparison("from_integer to " + std::string(name_of(F)));
      for (int value = -32768; value < 65536; ++value) {
        const auto index = static_cast<std::uint64_t>(value);
        if (value <= 32767) compare_from_integer<F>(comparison, static_cast<std::int16_t>(value), index);
        if (value >= 0) compare_from_integer<F>(comparison, static_cast<std::uint16_t>(value), index);
        if (value >= -128 && value <= 127)
          compare_from_integer<F>(comparison, static_cast<std::int8_t>(value), index);
        if (value >= 0 && value <= 255)
          compare_from_integer<F>(comparison, static_cast<std::uint8_t>(value), index);
      }
      comparison.finish((2 * 65536 + 2 * 256) * 11);
    }
  });
}

TEST_CASE("conversions from boundary-weighted integers of 32 and 64 bits to every format") {
  constexpr std::uint64_t integers = 4'000;
  for_each_format([]<const Format & F>() {
    oracle::Comparison comparison("from_integer to " + std::string(name_of(F)));
    oracle::RandomBits random(65);
    for (std::uint64_t i = 0; i < integers; ++i) {
      const std::uint64_t top = random.next() >> random.below(64);
      const std::uint64_t sparse = std::uint64_t{1} << random.below(64) | std::uint64_t{1}
                                                                              << random.below(64);
      const std::uint64_t value =
          (i % 2 == 0 ? top : sparse) + static_cast<std::uint64_t>(random.below(5) - 2);
      compare_from_integer<F>(comparison, value, i);
      compare_from_integer<F>(comparison, static_cast<std::int64_t>(value), i);
      compare_from_integer<F>(comparison, static_cast<std::uint32_t>(value), i);
      compare_from_integer<F>(comparison, static_cast<std::int32_t>(value), i);
    }
    comparison.finish(integers * 4 * 11);
  });
}

TEST_CASE("modf of all codes of the formats of at most 16 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 16 && F.has_arithmetic()) {
      const oracle::ExactFormat& format = oracle::exact<F>();
      oracle::Comparison comparison("modf in " + std::string(name_of(F)));
      std::uint64_t numbers = 0;
      for (std::uint64_t code = 0; code < format.codes(); ++code) {
        const double x = format.value(code);
        if (std::isnan(x)) continue;
        ++numbers;
        double integral = 0;
        const double fraction = std::modf(x, &integral);
        const Parts<F> parts = modf<F>(static_cast<Bits<F>>(code), {Rounding::toward_negative});
        comparison.equal(oracle::as_answer<F>({parts.integral, parts.flags}),
                         oracle::Placed(format, oracle::from_double(integral)).rounded({}), "integral",
                         {code});
        comparison.equal(oracle::as_answer<F>({parts.fraction, {}}),
                         oracle::Placed(format, oracle::from_double(fraction)).rounded({}), "fraction",
                         {code});
      }
      comparison.finish(numbers * 2);
    }
  });
}

TEST_CASE("modf of boundary-weighted doubles against the C++ library, flushing, and NaNs") {
  oracle::HardDoubles cases(66);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t a = cases.next();
    if (is_nan<binary64>(a)) continue;
    double integral = 0;
    const double fraction = std::modf(std::bit_cast<double>(a), &integral);
    const Parts<binary64> expected{
        std::bit_cast<std::uint64_t>(integral), std::bit_cast<std::uint64_t>(fraction), {}};
    if (modf<binary64>(a) != expected) FAIL_CHECK(std::bit_cast<double>(a));
  }
  CHECK(modf<binary16>(0x7d01) == Parts<binary16>{0x7f01, 0x7f01, {.invalid = true}});
  CHECK(modf<binary16>(0x8001, {.flush_to_zero = true}) ==
        Parts<binary16>{0x8000, 0x8000, {.inexact = true, .underflow = true}});
  CHECK(modf<binary16>(0x8001, {.denormals_are_zero = true}) == Parts<binary16>{0x8000, 0x8000, {}});
}

}  // namespace
}  // namespace fp16
