/// The formats of at most 8 bits, over all their codes and in every rounding; binary16 where its stochastic
/// rounding is hardest.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "tests/fp16/operations.h"
#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

using oracle::operand;
using oracle::Options;

// All operands are compared with the default options and with one other choice.

TEST_CASE("sums, differences, products and quotients of all pairs of the formats of at most 8 bits") {
  for_each_small_format([]<const Format & F>() {
    oracle::Comparison comparison("pairs of " + std::string(name_of(F)));
    constexpr std::uint64_t codes = std::uint64_t{1} << F.width();
    for (std::uint64_t pair = 0; pair < codes * codes; ++pair) {
      compare_pair<F>(comparison, pair / codes, pair % codes, Options(0));
      compare_pair<F>(comparison, pair / codes, pair % codes, Options::of_case(pair));
    }
    comparison.finish(codes * codes * 2 * 4 * 11);
  });
}

TEST_CASE("square roots of all codes of the formats of at most 8 bits and of binary16") {
  const auto compare_all = []<const Format & F>() {
    oracle::Comparison comparison("sqrt in " + std::string(name_of(F)));
    constexpr std::uint64_t codes = std::uint64_t{1} << F.width();
    for (std::uint64_t a = 0; a < codes; ++a) {
      compare_root<F>(comparison, a, Options(0));
      compare_root<F>(comparison, a, Options::of_case(a));
    }
    comparison.finish(codes * 2 * 11);
  };
  for_each_small_format(compare_all);
  compare_all.operator()<binary16>();
}

TEST_CASE("fma of all triples of the formats of at most 6 bits") {
  for_each_small_format([]<const Format & F>() {
    if constexpr (F.width() <= 6) {
      oracle::Comparison comparison("fma in " + std::string(name_of(F)));
      constexpr std::uint64_t codes = std::uint64_t{1} << F.width();
      for (std::uint64_t triple = 0; triple < codes * codes * codes; ++triple) {
        const std::uint64_t a = triple / codes / codes, b = triple / codes % codes, c = triple % codes;
        compare_triple<F>(comparison, a, b, c, Options(0));
        compare_triple<F>(comparison, a, b, c, Options::of_case(triple));
      }
      comparison.finish(codes * codes * codes * 2 * 11);
    }
  });
}

TEST_CASE("fma of random triples of the 8-bit formats") {
  constexpr std::uint64_t triples = 50'000;
  oracle::RandomBits random(31);
  for_each_small_format([&]<const Format & F>() {
    if constexpr (F.width() == 8) {
      oracle::Comparison comparison("fma in " + std::string(name_of(F)));
      for (std::uint64_t i = 0; i < triples; ++i) {
        const std::uint64_t bits = random.next();
        compare_triple<F>(comparison, bits & 255, bits >> 8 & 255, bits >> 16 & 255, Options(0));
        compare_triple<F>(comparison, bits & 255, bits >> 8 & 255, bits >> 16 & 255, Options::of_case(i));
      }
      comparison.finish(triples * 2 * 11);
    }
  });
}

TEST_CASE("operations on boundary-weighted halves, stochastic rounding included") {
  constexpr std::uint64_t pairs = 60'000;
  oracle::HardHalves cases(32);
  oracle::Comparison comparison("binary16");
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint16_t a = cases.next();
    const std::uint16_t b = i % 3 == 0 ? cases.near(a) : i % 3 == 1 ? cases.beside(a) : cases.next();
    const std::uint16_t product = multiply<binary16>(a, b).bits;
    const std::uint16_t c = i % 4 < 2    ? cases.next()
                            : i % 4 == 2 ? cases.near(product)
                                         : cases.beside(product);
    for (const Options& options : {Options(0), Options::of_case(i)}) {
      compare_pair<binary16>(comparison, a, b, options);
      compare_triple<binary16>(comparison, a, b, c, options);
    }
  }
  comparison.finish(pairs * 2 * 5 * 11);
}

TEST_CASE("fma of all triples of extreme halves") {
  std::vector<std::uint16_t> extremes;
  for (const int magnitude :
       {0x0000, 0x0001, 0x03ff, 0x0400, 0x0401, 0x3c00, 0x3c01, 0x7800, 0x7bff, 0x7c00}) {
    extremes.push_back(static_cast<std::uint16_t>(magnitude));
    extremes.push_back(static_cast<std::uint16_t>(magnitude | 0x8000));
  }
  oracle::Comparison comparison("fma of extremes");
  for (const std::uint16_t a : extremes) {
    for (const std::uint16_t b : extremes) {
      for (const std::uint16_t c : extremes) compare_triple<binary16>(comparison, a, b, c, Options(0));
    }
  }
  comparison.finish(20 * 20 * 20 * 11);
}

template <const Format& To, const Format& From>
void compare_conversion(oracle::Comparison& comparison, std::uint64_t a, const Options& options) {
  const auto code = static_cast<Bits<From>>(a);
  oracle::agree<To>(
      comparison, oracle::convert(oracle::exact<To>(), oracle::exact<From>(), operand<From>(options, a)),
      options, {a}, [&](const Attributes& attributes) { return convert<To, From>(code, attributes); },
      From.width() <= 32 ? 32 : 64);
}

std::string conversion_name(const Format& to, const Format& from) {
  return std::string(name_of(from)) + " to " + std::string(name_of(to));
}

TEST_CASE("conversions from all codes of the formats of at most 16 bits to every format") {
  for_each_format([]<const Format & From>() {
    if constexpr (From.width() <= 16) {
      for_each_format([]<const Format & To>() {
        oracle::Comparison comparison(conversion_name(To, From));
        constexpr std::uint64_t codes = std::uint64_t{1} << From.width();
        for (std::uint64_t a = 0; a < codes; ++a) {
          if (From.width() < 16 || a % 2 == 0) compare_conversion<To, From>(comparison, a, Options(0));
          if (From.width() < 16 || a % 2 == 1)
            compare_conversion<To, From>(comparison, a, Options::of_case(a));
        }
        comparison.finish(codes * (From.width() < 16 ? 2 : 1) * 11);
      });
    }
  });
}

/// Codes of a wide format that mean something to a narrow one: two neighbouring numbers of the narrow one,
/// their midpoint, the borders of its range, and everything beside them.
template <const Format& From, const Format& To>
Bits<From> hard_code(oracle::RandomBits& random) {
  const auto wide = [](double value) { return encode<From>(value).bits; };
  const Bits<From> lower = wide(decode<To>(static_cast<Bits<To>>(random.next() & max_finite_bits<To>)));
  const int exponent = To.emin_subnormal() - 3 + random.below(To.emax() - To.emin() + 16);
  const Bits<From> power = wide(std::ldexp(1.0, exponent));
  Bits<From> found = 0;
  switch (random.below(4)) {
    case 0:
      found = static_cast<Bits<From>>(random.next() & (max_finite_bits<From> | trailing_mask<From>));
      break;
    case 1:
      found = lower;
      break;
    case 2:
      found = static_cast<Bits<From>>(lower +
                                      (Bits<From>{1} << (From.trailing_bits() > To.trailing_bits()
                                                             ? From.trailing_bits() - To.trailing_bits() - 1
                                                             : 0)));
      break;
    default:
      found = power;
  }
  found = static_cast<Bits<From>>(found + random.below(5) - 2);
  return static_cast<Bits<From>>((found & (sign_mask<From> - 1)) |
                                 (random.below(2) == 0 ? 0 : sign_mask<From>));
}

TEST_CASE("conversions of boundary-weighted wide numbers to every format") {
  constexpr std::uint64_t numbers = 10'000;
  oracle::RandomBits random(33);
  for_each_format([&]<const Format & From>() {
    if constexpr (From.width() > 16) {
      for_each_format([&]<const Format & To>() {
        oracle::Comparison comparison(conversion_name(To, From));
        for (std::uint64_t i = 0; i < numbers; ++i) {
          const std::uint64_t a = hard_code<From, To>(random);
          compare_conversion<To, From>(comparison, a, Options(0));
          compare_conversion<To, From>(comparison, a, Options::of_case(i));
        }
        comparison.finish(numbers * 2 * 11);
      });
    }
  });
}

}  // namespace
}  // namespace fp16
