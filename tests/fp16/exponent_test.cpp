#include "fp16/exponent.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

using oracle::Options;

static_assert(scalb<binary16>(0x3c00, -24).bits == 0x0001);
static_assert(scalb<binary16>(0x3c00, std::numeric_limits<int>::min()) ==
              Result<binary16>{0x0000, {.inexact = true, .underflow = true}});
static_assert(scalb<binary16>(0x8001, std::numeric_limits<int>::max()).bits == 0xfc00);
static_assert(ilogb<binary16>(0x0001).value == -24);
static_assert(ilogb<e8m0>(0xfe).value == 127);
static_assert(logb<binary16>(0x8000) == Result<binary16>{0xfc00, {.divide_by_zero = true}});
static_assert(logb<e5m2>(0x7b) == Result<e5m2>{0x4c, {.inexact = true}});  // 15 becomes 16
static_assert(frexp<binary16>(0xc500) == FractionAndExponent<binary16>{0xb900, 3, {}});
static_assert(frexp<e2m1>(0x5) ==
              FractionAndExponent<e2m1>{0x2, 2, {.inexact = true, .underflow = true}});  // 3/4 is a tie

/// The value of a code that is no NaN, read by the options.
template <const Format& F>
double value_read(const Options& options, std::uint64_t code) {
  return oracle::exact<F>().value(oracle::operand<F>(options, code));
}

template <const Format& F>
void compare_scalb(oracle::Comparison& comparison, std::uint64_t code, int n, const Options& options) {
  oracle::agree<F>(comparison, oracle::from_double(value_read<F>(options, code), n), options,
                   {code, static_cast<std::uint64_t>(n)}, [&](const Attributes& attributes) {
                     return scalb<F>(static_cast<Bits<F>>(code), n, attributes);
                   });
}

TEST_CASE("scalb of all numbers of the formats of at most 8 bits by every power, and of binary16 by some") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 16 && F.has_arithmetic() && F.exponent_bits <= 5) {
      oracle::Comparison comparison("scalb in " + std::string(name_of(F)));
      std::uint64_t scaled = 0;
      constexpr int reach = F.emax() - F.emin_subnormal() + 70;
      for (int n = -reach; n <= reach; n += F.width() <= 8 ? 1 : 9) {
        for (std::uint64_t code = 0; code < oracle::exact<F>().codes(); code += F.width() <= 8 ? 1 : 61) {
          if (oracle::exact<F>().is_nan(code)) continue;
          ++scaled;
          compare_scalb<F>(comparison, code, n, Options::of_case(scaled));
        }
      }
      comparison.finish(scaled * 11);
    }
  });
}

TEST_CASE("scalb, ilogb, logb and frexp of boundary-weighted doubles against the C++ library") {
  constexpr std::uint64_t numbers = 200'000;
  oracle::HardDoubles cases(81);
  oracle::RandomBits random(82);
  oracle::Comparison comparison("exponents in binary64");
  for (std::uint64_t i = 0; i < numbers; ++i) {
    std::uint64_t a = cases.next();
    if (is_nan<binary64>(a)) a = i;
    const auto x = std::bit_cast<double>(a);
    const int n = random.below(i % 2 == 0 ? 4400 : 100) - (i % 2 == 0 ? 2200 : 50);
    const FractionAndExponent<binary64> parts = frexp<binary64>(a);
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    const auto equal = [&](std::uint64_t got, double expected, std::string_view name) {
      comparison.equal(got, std::bit_cast<std::uint64_t>(expected), name, {a, static_cast<std::uint64_t>(n)});
    };
    equal(scalb<binary64>(a, n).bits, std::scalbn(x, n), "scalb");
    equal(logb<binary64>(a).bits, std::logb(x), "logb");
    equal(parts.fraction, fraction, "fraction");
    comparison.equal<std::uint64_t>(static_cast<std::uint64_t>(parts.exponent),
                                    static_cast<std::uint64_t>(std::isfinite(x) ? exponent : 0), "exponent",
                                    {a});
    // What libraries say of zero is FP_ILOGB0, which is the smallest int or the one above.
    const int binade = x == 0 ? std::numeric_limits<int>::min() : std::ilogb(x);
    comparison.equal<std::uint64_t>(static_cast<std::uint64_t>(ilogb<binary64>(a).value),
                                    static_cast<std::uint64_t>(binade), "ilogb", {a});
  }
  comparison.finish(numbers * 5);
}

TEST_CASE("logb and frexp of all codes of the formats of at most 16 bits, in all roundings") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 16 && F.has_arithmetic()) {
      oracle::Comparison logarithms("logb in " + std::string(name_of(F)));
      oracle::Comparison fractions("frexp in " + std::string(name_of(F)));
      std::uint64_t numbers = 0;
      int wrong = 0;
      for (std::uint64_t code = 0; code < oracle::exact<F>().codes(); ++code) {
        if (oracle::exact<F>().is_nan(code)) continue;
        const Options options = Options::of_case(++numbers);
        const auto a = static_cast<Bits<F>>(code);
        const double x = value_read<F>(options, code);
        oracle::Ideal logarithm = oracle::from_double(std::logb(x));
        logarithm.divide_by_zero = x == 0;
        oracle::agree<F>(logarithms, logarithm, options, {code},
                         [&](const Attributes& attributes) { return logb<F>(a, attributes); });
        int exponent = 0;
        const double fraction = std::frexp(x, &exponent);
        oracle::agree<F>(fractions, oracle::from_double(fraction), options, {code},
                         [&](const Attributes& attributes) {
                           const FractionAndExponent<F> parts = frexp<F>(a, attributes);
                           wrong += parts.exponent != (std::isfinite(x) ? exponent : 0);
                           return Result<F>{parts.fraction, parts.flags};
                         });
      }
      CHECK(wrong == 0);
      logarithms.finish(numbers * 11);
      fractions.finish(numbers * 11);
    }
  });
}

TEST_CASE("exponents of NaNs, infinities and zeros") {
  CHECK(scalb<binary16>(0x7d01, 3) == Result<binary16>{0x7f01, {.invalid = true}});
  CHECK(scalb<binary16>(0xfc00, -100) == Result<binary16>{0xfc00, {}});
  CHECK(logb<binary16>(0xfc00) == Result<binary16>{0x7c00, {}});
  CHECK(logb<binary16>(0xfe01) == Result<binary16>{0xfe01, {}});
  CHECK(frexp<binary16>(0x7d01) == FractionAndExponent<binary16>{0x7f01, 0, {.invalid = true}});
  CHECK(ilogb<binary16>(0x0000) == IntegerResult<int>{std::numeric_limits<int>::min(), {.invalid = true}});
  CHECK(ilogb<binary16>(0x7e00) == IntegerResult<int>{std::numeric_limits<int>::min(), {.invalid = true}});
  CHECK(ilogb<binary16>(0xfc00) == IntegerResult<int>{std::numeric_limits<int>::max(), {.invalid = true}});
}

}  // namespace
}  // namespace fp16
