#include "fp16/math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fp16/half_text.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/hard_cases.h"
#include "tests/oracle/mpfr_half.h"

namespace fp16 {
namespace {

using R = Result<binary16>;
constexpr Flags invalid{.invalid = true};
constexpr Flags pole{.divide_by_zero = true};
constexpr Flags inexact{.inexact = true};
constexpr Flags underflow{.inexact = true, .underflow = true};
constexpr Flags overflow{.inexact = true, .overflow = true};

std::vector<std::uint16_t> all_codes() {
  std::vector<std::uint16_t> codes(math::code_count);
  std::iota(codes.begin(), codes.end(), std::uint16_t{0});
  return codes;
}

/// The number of codes compared.
std::uint64_t check_numbers(const math::UnaryFunction& function, oracle::Comparison& halves,
                            oracle::Comparison& tables) {
  std::uint64_t numbers = 0;
  for (const std::uint16_t a : all_codes()) {
    if (is_nan<binary16>(a)) continue;
    ++numbers;
    const oracle::Rounded expected = oracle::function_of_half(function.name(), a);
    halves.equal_in_all_directions(expected.half, {a},
                                   [&](const Attributes& attributes) { return function(a, attributes); });
    tables.equal<std::uint64_t>(function.to_odd()[a], expected.binary32_to_odd, "to odd", {a});
  }
  return numbers;
}

TEST_CASE("every function of every number, in all directions with flags, against MPFR") {
  for (const math::UnaryFunction* function : math::unary_functions()) {
    const std::string name(function->name());
    oracle::Comparison halves(name), tables(name + " table");
    const std::uint64_t numbers = check_numbers(*function, halves, tables);
    CHECK(numbers == 0x10000 - 2 * 0x3ff);
    halves.finish(numbers * 6);
    tables.finish(numbers);
  }
}

TEST_CASE("every function of every NaN follows the policy") {
  for (const math::UnaryFunction* function : math::unary_functions()) {
    oracle::Comparison comparison{std::string(function->name())};
    for (const std::uint16_t a : all_codes()) {
      if (!is_nan<binary16>(a)) continue;
      const bool signalling = (a & 0x0200) == 0;
      for (const auto& [policy, bits] :
           {std::pair{NanPolicy::first_operand, a | 0x0200}, std::pair{NanPolicy::canonical_nvidia, 0x7fff},
            std::pair{NanPolicy::canonical_riscv, 0x7e00}}) {
        const oracle::Outcome expected{.bits = static_cast<std::uint16_t>(bits), .invalid = signalling};
        comparison.equal(oracle::as_outcome((*function)(a, {.nan_policy = policy})), expected, "", {a});
      }
    }
    comparison.finish(2 * 0x3ff * 3);
  }
}

struct SpecialCase {
  const math::UnaryFunction& function;
  std::uint16_t argument;
  R expected;
};

TEST_CASE("special cases as IEEE 754-2019 and C23 list them") {
  const std::array cases{SpecialCase{math::exp, 0x8000, {0x3c00, {}}},
                         SpecialCase{math::exp, 0xfc00, {0x0000, {}}},
                         SpecialCase{math::exp2, 0x4200, {0x4800, {}}},
                         SpecialCase{math::exp2, 0xce00, {0x0001, {}}},
                         SpecialCase{math::exp2, 0x4c00, {0x7c00, overflow}},
                         SpecialCase{math::exp10, 0x4000, {0x5640, {}}},
                         SpecialCase{math::expm1, 0x8000, {0x8000, {}}},
                         SpecialCase{math::expm1, 0xfc00, {0xbc00, {}}},
                         SpecialCase{math::log, 0x8000, {0xfc00, pole}},
                         SpecialCase{math::log, 0x3c00, {0x0000, {}}},
                         SpecialCase{math::log, 0x8001, {0xfe00, invalid}},
                         SpecialCase{math::log, 0xfc00, {0xfe00, invalid}},
                         SpecialCase{math::log2, 0x0001, {0xce00, {}}},
                         SpecialCase{math::log10, 0x70e2, {0x4400, {}}},
                         SpecialCase{math::log1p, 0xbc00, {0xfc00, pole}},
                         SpecialCase{math::log1p, 0xbc01, {0xfe00, invalid}},
                         SpecialCase{math::sin, 0x8000, {0x8000, {}}},
                         SpecialCase{math::sin, 0x7c00, {0xfe00, invalid}},
                         SpecialCase{math::cos, 0x8000, {0x3c00, {}}},
                         SpecialCase{math::tan, 0xfc00, {0xfe00, invalid}},
                         SpecialCase{math::asin, 0x3c01, {0xfe00, invalid}},
                         SpecialCase{math::acos, 0x3c00, {0x0000, {}}},
                         SpecialCase{math::acos, 0xbc00, {0x4248, inexact}},
                         SpecialCase{math::atan, 0xfc00, {0xbe48, inexact}},
                         SpecialCase{math::sinh, 0xfc00, {0xfc00, {}}},
                         SpecialCase{math::cosh, 0xfc00, {0x7c00, {}}},
                         SpecialCase{math::tanh, 0xfc00, {0xbc00, {}}},
                         SpecialCase{math::asinh, 0x8000, {0x8000, {}}},
                         SpecialCase{math::acosh, 0x3c00, {0x0000, {}}},
                         SpecialCase{math::acosh, 0x3bff, {0xfe00, invalid}},
                         SpecialCase{math::atanh, 0xbc00, {0xfc00, pole}},
                         SpecialCase{math::atanh, 0x3c01, {0xfe00, invalid}},
                         SpecialCase{math::cbrt, 0xcec0, {0xc200, {}}},
                         SpecialCase{math::rsqrt, 0x8000, {0xfc00, pole}},
                         SpecialCase{math::rsqrt, 0x4400, {0x3800, {}}},
                         SpecialCase{math::rsqrt, 0x7c00, {0x0000, {}}},
                         SpecialCase{math::rcp, 0x8000, {0xfc00, pole}},
                         SpecialCase{math::rcp, 0xfc00, {0x8000, {}}},
                         SpecialCase{math::rcp, 0x0001, {0x7c00, overflow}},
                         SpecialCase{math::erf, 0xfc00, {0xbc00, {}}},
                         SpecialCase{math::erfc, 0xfc00, {0x4000, {}}},
                         SpecialCase{math::erfc, 0x7c00, {0x0000, {}}},
                         SpecialCase{math::tgamma, 0x8000, {0xfc00, pole}},
                         SpecialCase{math::tgamma, 0xbc00, {0xfe00, invalid}},
                         SpecialCase{math::tgamma, 0xfc00, {0xfe00, invalid}},
                         SpecialCase{math::tgamma, 0x4500, {0x4e00, {}}},
                         SpecialCase{math::lgamma, 0x4000, {0x0000, {}}},
                         SpecialCase{math::lgamma, 0xbc00, {0x7c00, pole}},
                         SpecialCase{math::lgamma, 0xfc00, {0x7c00, {}}},
                         SpecialCase{math::sigmoid, 0xfc00, {0x0000, {}}},
                         SpecialCase{math::sigmoid, 0x8000, {0x3800, {}}},
                         SpecialCase{math::gelu, 0xfc00, {0x8000, {}}},
                         SpecialCase{math::gelu, 0xfbff, {0x8000, underflow}},
                         SpecialCase{math::silu, 0xfc00, {0x8000, {}}},
                         SpecialCase{math::silu, 0x8000, {0x8000, {}}},
                         SpecialCase{math::softplus, 0xfc00, {0x0000, {}}},
                         SpecialCase{math::softplus, 0x0000, {0x398c, inexact}}};
  for (const SpecialCase& row : cases) {
    CAPTURE(row.function.name());
    CAPTURE(row.argument);
    CHECK(row.function(row.argument) == row.expected);
  }
}

TEST_CASE("limits that are never reached show in the directed modes") {
  const Attributes down{Rounding::toward_zero};
  const Attributes up{Rounding::toward_positive};
  CHECK(math::tanh(0x4d00, down) == R{0x3bff, inexact});
  CHECK(math::tanh(0x7bff, down) == R{0x3bff, inexact});
  CHECK(math::erf(0x7bff, down) == R{0x3bff, inexact});
  CHECK(math::erfc(0xfbff, down) == R{0x3fff, inexact});
  CHECK(math::sigmoid(0x7bff, down) == R{0x3bff, inexact});
  CHECK(math::expm1(0xfbff, up) == R{0xbbff, inexact});
  CHECK(math::sin(0x0001, down) == R{0x0000, underflow});
  CHECK(math::cos(0x0001, down) == R{0x3bff, inexact});
  CHECK(math::exp(0x8001, down) == R{0x3bff, inexact});
  CHECK(math::cosh(0x8001, up) == R{0x3c01, inexact});
  CHECK(math::softplus(0x7bfe, up) == R{0x7bff, inexact});
  CHECK(math::softplus(0xfbff, up) == R{0x0001, underflow});
  CHECK(math::gelu(0xfbff, {Rounding::toward_negative}) == R{0x8001, underflow});
  CHECK(math::silu(0x7bff, down) == R{0x7bfe, inexact});
  CHECK(math::exp(0x7bff, down) == R{0x7bff, overflow});
}

TEST_CASE("attributes beside the direction") {
  CHECK(math::exp(0x5000, {.saturate = true}) == R{0x7bff, overflow});
  CHECK(math::log(0x0000, {.saturate = true}) ==
        R{0xfbff, {.inexact = true, .overflow = true, .divide_by_zero = true}});
  CHECK(math::asin(0x0200) == R{0x0200, underflow});
  CHECK(math::asin(0x0200, {.flush_to_zero = true}) == R{0x0000, underflow});
  CHECK(math::asin(0x8200, {.denormals_are_zero = true}) == R{0x8000, {}});
  CHECK(math::log(0x0200, {.denormals_are_zero = true}) == R{0xfc00, pole});
  CHECK(math::pow(0x0200, 0xbc00, {.denormals_are_zero = true}) == R{0x7c00, pole});
  CHECK(math::hypot(0x0200, 0x8200, {.denormals_are_zero = true}) == R{0x0000, {}});
  CHECK(math::atan2(0x0200, 0xbc00, {.denormals_are_zero = true}) == R{0x4248, inexact});
  CHECK(math::log(0xbc00, {.nan_policy = NanPolicy::canonical_nvidia}) == R{0x7fff, invalid});
  // exp(1) = 0x1.5bf0a8...p1 lies 0.76 of the way from 0x416f to 0x4170.
  CHECK(math::exp(0x3c00, {Rounding::stochastic, std::uint64_t{0xc3} << 56}).bits == 0x416f);
  CHECK(math::exp(0x3c00, {Rounding::stochastic, std::uint64_t{0xc2} << 56}).bits == 0x4170);
}

/// Operands of special interest in one place, any in the other.
template <typename Function, typename Oracle>
void check_special_pairs(std::string name, Function function, Oracle reference) {
  oracle::Comparison comparison(name);
  std::uint64_t pairs = 0;
  for (const std::uint16_t magnitude :
       {0x0000, 0x0001, 0x0400, 0x3800, 0x3bff, 0x3c00, 0x3c01, 0x4000, 0x4200, 0x6401, 0x7bff, 0x7c00}) {
    for (std::uint32_t index = 0; index < 0x20000; index += 1 + index % 5) {
      const auto special = static_cast<std::uint16_t>(magnitude | (index >> 16) << 15);
      const auto other = static_cast<std::uint16_t>(index);
      if (is_nan<binary16>(other)) continue;
      for (const auto& [a, b] : {std::pair{special, other}, std::pair{other, special}}) {
        ++pairs;
        comparison.equal_in_all_directions(reference(a, b).half, {a, b}, [&](const Attributes& attributes) {
          return function(a, b, attributes);
        });
      }
    }
  }
  comparison.finish(pairs * 6);
}

/// Pairs: unrelated, of near exponents, nearly equal, or a number near 1 with any other.
template <typename Function, typename Oracle>
void check_hard_pairs(std::string name, Function function, Oracle reference) {
  oracle::Comparison comparison(name);
  oracle::HardHalves cases(21);
  std::uint64_t compared = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint16_t a = i % 4 == 3 ? cases.near(0x3c00) : cases.next();
    const std::uint16_t b = i % 4 == 1 ? cases.near(a) : i % 4 == 2 ? cases.beside(a) : cases.next();
    if (is_nan<binary16>(a) || is_nan<binary16>(b)) continue;
    ++compared;
    comparison.equal_in_all_directions(reference(a, b).half, {a, b}, [&](const Attributes& attributes) {
      return function(a, b, attributes);
    });
  }
  CHECK(compared > 150'000);
  comparison.finish(compared * 6);
}

TEST_CASE("pow of special and boundary-weighted pairs, in all directions with flags, against MPFR") {
  check_special_pairs("pow", math::pow, oracle::pow);
  check_hard_pairs("pow", math::pow, oracle::pow);
}
TEST_CASE("hypot of special and boundary-weighted pairs, in all directions with flags, against MPFR") {
  check_special_pairs("hypot", math::hypot, oracle::hypot);
  check_hard_pairs("hypot", math::hypot, oracle::hypot);
}
TEST_CASE("atan2 of special and boundary-weighted pairs, in all directions with flags, against MPFR") {
  check_special_pairs("atan2", math::atan2, oracle::atan2);
  check_hard_pairs("atan2", math::atan2, oracle::atan2);
}

/// Perfect powers, their neighbours, and exponents that make powers of them: where results are exact or ties.
TEST_CASE("pow of integers and dyadic fractions, in all directions with flags, against MPFR") {
  oracle::Comparison comparison("pow");
  constexpr int bases = 2048;
  constexpr int exponents = 80;
  for (int base = 1; base <= bases; ++base) {
    for (int eighths = 1; eighths <= exponents; ++eighths) {
      const std::uint16_t x = half(static_cast<float>(base) / 32).bits();
      const std::uint16_t y = half(static_cast<float>(eighths) / 8).bits();
      comparison.equal_in_all_directions(oracle::pow(x, y).half, {x, y}, [&](const Attributes& attributes) {
        return math::pow(x, y, attributes);
      });
    }
  }
  comparison.finish(bases * exponents * 6);
}

TEST_CASE("special cases of pow (IEEE 754-2019 clause 9.2.1)") {
  CHECK(math::pow(0x7e01, 0x8000) == R{0x3c00, {}});
  CHECK(math::pow(0x3c00, 0xfe01) == R{0x3c00, {}});
  CHECK(math::pow(0x7d01, 0x0000) == R{0x7f01, invalid});
  CHECK(math::pow(0x3c00, 0x7d01) == R{0x7f01, invalid});
  CHECK(math::pow(0x7e01, 0x7e02) == R{0x7e01, {}});
  CHECK(math::pow(0xbc00, 0x7e02) == R{0x7e02, {}});
  CHECK(math::pow(0x8000, 0xc200) == R{0xfc00, pole});
  CHECK(math::pow(0x8000, 0xc000) == R{0x7c00, pole});
  CHECK(math::pow(0x0000, 0xb800) == R{0x7c00, pole});
  CHECK(math::pow(0x8000, 0xfc00) == R{0x7c00, {}});
  CHECK(math::pow(0x8000, 0x7c00) == R{0x0000, {}});
  CHECK(math::pow(0x8000, 0x4200) == R{0x8000, {}});
  CHECK(math::pow(0x8000, 0x3800) == R{0x0000, {}});
  CHECK(math::pow(0xbc00, 0xfc00) == R{0x3c00, {}});
  CHECK(math::pow(0xbc00, 0x6400) == R{0x3c00, {}});
  CHECK(math::pow(0xbc00, 0x6401) == R{0xbc00, {}});
  CHECK(math::pow(0xbc00, 0x3800) == R{0xfe00, invalid});
  CHECK(math::pow(0xbbff, 0xfc00) == R{0x7c00, {}});
  CHECK(math::pow(0xfc00, 0xc200) == R{0x8000, {}});
  CHECK(math::pow(0xfc00, 0x4200) == R{0xfc00, {}});
  CHECK(math::pow(0xfc00, 0x3800) == R{0x7c00, {}});
  CHECK(math::pow(0xfc00, 0x7c00) == R{0x7c00, {}});
  CHECK(math::pow(0xc000, 0x4200) == R{0xc800, {}});
  CHECK(math::pow(0xc000, 0x6401) == R{0xfc00, overflow});
}

TEST_CASE("special cases of hypot and atan2") {
  CHECK(math::hypot(0x7e01, 0xfc00) == R{0x7c00, {}});
  CHECK(math::hypot(0xfc00, 0x7e01) == R{0x7c00, {}});
  CHECK(math::hypot(0xfc00, 0x7d01) == R{0x7f01, invalid});
  CHECK(math::hypot(0x8000, 0x8000) == R{0x0000, {}});
  CHECK(math::hypot(0xc200, 0x4400) == R{0x4500, {}});
  CHECK(math::hypot(0x8001, 0x8000) == R{0x0001, {}});
  CHECK(math::atan2(0x8000, 0x0000) == R{0x8000, {}});
  CHECK(math::atan2(0x8000, 0x8000) == R{0xc248, inexact});
  CHECK(math::atan2(0x0001, 0x8000) == R{0x3e48, inexact});
  CHECK(math::atan2(0xfc00, 0xfc00) == R{0xc0b6, inexact});
  CHECK(math::atan2(0x7c00, 0x7c00) == R{0x3a48, inexact});
  CHECK(math::atan2(0x8001, 0x7c00) == R{0x8000, {}});
  CHECK(math::atan2(0x8001, 0xfc00) == R{0xc248, inexact});
  CHECK(math::atan2(0x7e01, 0xfe02) == R{0x7e01, {}});
}

TEST_CASE("apply gives over arrays what the function gives one by one, in place and on threads too") {
  const std::vector<std::uint16_t> in = all_codes();
  const std::vector<std::uint64_t> random_bits(in.size(), std::uint64_t{1} << 62);
  for (const math::UnaryFunction* function : math::unary_functions()) {
    CAPTURE(function->name());
    const auto check = [&](const Attributes& attributes, const ArrayOptions& options) {
      std::vector<std::uint16_t> out = in;
      math::apply(*function, out, out, attributes, options);
      const bool equal =
          std::ranges::equal(in, out, {}, [&](std::uint16_t a) { return (*function)(a, attributes).bits; });
      CHECK(equal);
    };
    for (const Rounding rounding : oracle::roundings) check({.rounding = rounding}, {.threads = 2});
    check({.saturate = true, .nan_policy = NanPolicy::canonical_nvidia}, {});
    check({.rounding = Rounding::stochastic, .random_bits = std::uint64_t{1} << 62},
          {.random_bits_64 = random_bits});
    RoundingCounts counts;
    check({}, {.threads = 3, .counts = &counts});
    CHECK(counts.exact + counts.inexact + counts.overflowed == in.size());
  }
}

TEST_CASE("apply of a function of two arguments") {
  const std::vector<std::uint16_t> a{0x4000, 0x4200, 0x7c00}, b{0x4200, 0x4400, 0x0000};
  std::vector<std::uint16_t> out(3);
  math::apply(math::pow, a, b, out);
  CHECK(out == std::vector<std::uint16_t>{0x4800, 0x5510, 0x3c00});  // 2^3, 3^4, infinity^0
  math::apply(math::hypot, a, b, out);
  CHECK(out[1] == 0x4500);  // 3, 4, 5
}

TEST_CASE("apply refuses arrays of different lengths and stochastic rounding without random numbers") {
  const std::vector<std::uint16_t> in(3);
  std::vector<std::uint16_t> out(3);
  CHECK_THROWS_WITH_AS(math::apply(math::exp, in, std::span(out).first(2)),
                       "out: has 2 elements; must have 3, as the other arrays", std::invalid_argument);
  CHECK_THROWS_WITH_AS(math::apply(math::exp, in, out, {Rounding::stochastic}),
                       "random_bits_32: has 0 elements; must have 3, as the other arrays",
                       std::invalid_argument);
}

TEST_CASE("threads that need a table at once get the same one") {
  std::array<const math::ToOddTable*, 4> tables{};
  std::vector<std::jthread> threads;
  for (auto& table : tables) threads.emplace_back([&table] { table = &math::cosh.to_odd(); });
  threads.clear();
  CHECK(std::ranges::count(tables, &math::cosh.to_odd()) == 4);
}

TEST_CASE("the functions of half round to nearest-even") {
  const half two(2.0f);
  CHECK(exp(half(1.0f)).bits() == 0x4170);
  CHECK(log2(half(8.0f)) == half(3.0f));
  CHECK(gelu(two).bits() == math::gelu(two.bits()).bits);
  CHECK(pow(two, half(-3.0f)) == half(0.125f));
  CHECK(hypot(half(3.0f), half(4.0f)) == half(5.0f));
  CHECK(atan2(half(1.0f), half(-1.0f)).bits() == 0x40b6);
}

}  // namespace
}  // namespace fp16
