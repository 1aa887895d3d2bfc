#include "fp16/arithmetic.h"

#include <doctest/doctest.h>

#include <bit>
#include <compare>
#include <cstdint>

#include "fp16/codec.h"
#include "fp16/comparison.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/compilers_half.h"
#include "tests/oracle/exact_half.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

// Through a float fma these two round twice and go wrong; the directed one is lost even to a double fma.
static_assert(fma<binary16>(0x6a40, 0xad70, 0x00b3).bits == 0xdc3f);
static_assert(fma<binary16>(float_to_half_bits(0x1.eacp+7f), float_to_half_bits(0x1.3f4p+4f),
                            float_to_half_bits(0x1.c04p+14f))
                  .bits == 0x7819);
static_assert(fma<binary16>(0x0001, 0x0001, 0x7800, {Rounding::toward_positive}) ==
              Result<binary16>{0x7801, {.inexact = true}});

static_assert(add<binary16>(0x3c00, 0x3c00) == Result<binary16>{0x4000, {}});
static_assert(subtract<binary16>(0x3c00, 0x3c00, {Rounding::toward_negative}) ==
              Result<binary16>{0x8000, {}});
static_assert(multiply<binary16>(0x7bff, 0x7bff) ==
              Result<binary16>{0x7c00, {.inexact = true, .overflow = true}});
static_assert(divide<binary16>(0x3c00, 0x8000) == Result<binary16>{0xfc00, {.divide_by_zero = true}});
static_assert(sqrt<binary16>(0x4000) == Result<binary16>{0x3da8, {.inexact = true}});
static_assert(sqrt<binary16>(0xbc00) == Result<binary16>{0xfe00, {.invalid = true}});

TEST_CASE("the square roots of all 65,536 codes in all directions with flags") {
  oracle::Comparison comparison("sqrt");
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto a = static_cast<std::uint16_t>(code);
    comparison.equal_in_all_directions(
        oracle::sqrt(a), {a}, [&](const Attributes& attributes) { return sqrt<binary16>(a, attributes); });
  }
  comparison.finish(0x10000 * 6);
}

/// Pairs: unrelated, of near exponents, and nearly equal or opposite (cancellation).
struct Pair {
  std::uint16_t a, b;
};
Pair hard_pair(oracle::HardHalves& cases, int index) {
  const std::uint16_t a = cases.next();
  return {a, index % 4 < 2 ? cases.next() : index % 4 == 2 ? cases.near(a) : cases.beside(a)};
}

TEST_CASE("boundary-weighted pairs in all directions with flags") {
  constexpr int pairs = 200'000;
  oracle::HardHalves cases(11);
  oracle::Comparison sums("add"), differences("subtract"), products("multiply"), quotients("divide");
  for (int i = 0; i < pairs; ++i) {
    const auto [a, b] = hard_pair(cases, i);
    sums.equal_in_all_directions(oracle::add(a, b), {a, b}, [&](const Attributes& attributes) {
      return add<binary16>(a, b, attributes);
    });
    differences.equal_in_all_directions(oracle::subtract(a, b), {a, b}, [&](const Attributes& attributes) {
      return subtract<binary16>(a, b, attributes);
    });
    products.equal_in_all_directions(oracle::multiply(a, b), {a, b}, [&](const Attributes& attributes) {
      return multiply<binary16>(a, b, attributes);
    });
    quotients.equal_in_all_directions(oracle::divide(a, b), {a, b}, [&](const Attributes& attributes) {
      return divide<binary16>(a, b, attributes);
    });
  }
  for (const oracle::Comparison* comparison : {&sums, &differences, &products, &quotients})
    comparison->finish(pairs * 6);
}

TEST_CASE("boundary-weighted triples of fma in all directions with flags") {
  constexpr int triples = 200'000;
  oracle::HardHalves cases(12);
  oracle::Comparison comparison("fma");
  for (int i = 0; i < triples; ++i) {
    const auto [a, b] = hard_pair(cases, i / 4);
    const auto product = std::bit_cast<std::uint16_t>(
        static_cast<oracle::CompilersHalf>(half_bits_to_float(a) * half_bits_to_float(b)));
    const std::uint16_t c = i % 4 < 2    ? cases.next()
                            : i % 4 == 2 ? cases.near(product)
                                         : cases.beside(product);
    comparison.equal_in_all_directions(oracle::fma(a, b, c), {a, b, c}, [&](const Attributes& attributes) {
      return fma<binary16>(a, b, c, attributes);
    });
  }
  comparison.finish(triples * 6);
}

/// binary32 has 24 >= 2 * 11 + 2 digits, so that rounding its correctly rounded result again to half is
/// harmless (Figueroa, "When is double rounding innocuous?", 1995).
TEST_CASE("ten million random pairs, nearest-even, against float arithmetic rounded by the compiler") {
  constexpr std::uint64_t pairs = 10'000'000;
  oracle::RandomBits random(13);
  oracle::Comparison sums("add"), differences("subtract"), products("multiply"), quotients("divide");
  const auto compare = [](oracle::Comparison& comparison, std::uint16_t got, float reference, std::uint16_t a,
                          std::uint16_t b) {
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<oracle::CompilersHalf>(reference));
    const bool both_nan = is_nan<binary16>(got) && is_nan<binary16>(expected);
    comparison.equal<std::uint64_t>(both_nan ? expected : got, expected, "", {a, b});
  };
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint64_t bits = random.next();
    const auto a = static_cast<std::uint16_t>(bits);
    const auto b = static_cast<std::uint16_t>(bits >> 16);
    const auto x = static_cast<float>(std::bit_cast<oracle::CompilersHalf>(a));
    const auto y = static_cast<float>(std::bit_cast<oracle::CompilersHalf>(b));
    compare(sums, add<binary16>(a, b).bits, x + y, a, b);
    compare(differences, subtract<binary16>(a, b).bits, x - y, a, b);
    compare(products, multiply<binary16>(a, b).bits, x * y, a, b);
    compare(quotients, divide<binary16>(a, b).bits, x / y, a, b);
  }
  for (const oracle::Comparison* comparison : {&sums, &differences, &products, &quotients})
    comparison->finish(pairs);
}

TEST_CASE("the first NaN in argument order wins and is quieted, any signalling NaN raises invalid") {
  using R = Result<binary16>;
  CHECK(add<binary16>(0x7e01, 0xfe02) == R{0x7e01, {}});
  CHECK(add<binary16>(0x7e01, 0xfd02) == R{0x7e01, {.invalid = true}});
  CHECK(add<binary16>(0x7d01, 0xfe02) == R{0x7f01, {.invalid = true}});
  CHECK(subtract<binary16>(0x3c00, 0x7e02) == R{0x7e02, {}});
  CHECK(multiply<binary16>(0x0000, 0xfe02) == R{0xfe02, {}});
  CHECK(divide<binary16>(0xfe01, 0x0000) == R{0xfe01, {}});
  CHECK(sqrt<binary16>(0xfd01) == R{0xff01, {.invalid = true}});
  CHECK(fma<binary16>(0x3c00, 0x7e02, 0x7e03) == R{0x7e02, {}});
  CHECK(fma<binary16>(0x7c00, 0x0000, 0x7e03) == R{0x7e03, {}});
}

TEST_CASE("invalid operations give the default NaN") {
  const Result<binary16> invalid{0xfe00, {.invalid = true}};
  CHECK(add<binary16>(0x7c00, 0xfc00) == invalid);
  CHECK(subtract<binary16>(0x7c00, 0x7c00) == invalid);
  CHECK(multiply<binary16>(0x8000, 0x7c00) == invalid);
  CHECK(divide<binary16>(0x0000, 0x8000) == invalid);
  CHECK(divide<binary16>(0xfc00, 0x7c00) == invalid);
  CHECK(fma<binary16>(0x0000, 0x7c00, 0x3c00) == invalid);
  CHECK(fma<binary16>(0x3c00, 0x7c00, 0xfc00) == invalid);
}

TEST_CASE("comparison of boundary-weighted pairs equals that of the floats") {
  oracle::HardHalves cases(14);
  oracle::Comparison comparison("compare");
  constexpr std::uint64_t pairs = 1'000'000;
  const auto number = [](std::partial_ordering order) {
    return order < 0 ? 0u : order == 0 ? 1u : order > 0 ? 2u : 3u;
  };
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const auto [a, b] = hard_pair(cases, static_cast<int>(i));
    const auto expected = half_bits_to_float(a) <=> half_bits_to_float(b);
    comparison.equal<std::uint64_t>(number(compare<binary16>(a, b)), number(expected), "", {a, b});
  }
  comparison.finish(pairs);
}

}  // namespace
}  // namespace fp16
