/// `halflab show` on functions: its bits are MPFR's, and its results in halves those of fp16::math.

#include <doctest/doctest.h>
#include <gmp.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "fp16/codec.h"
#include "fp16/math.h"
#include "fp16/rounding_names.h"
#include "tests/oracle/mpfr_number.h"
#include "tests/tools/halflab/command.h"
#include "tools/halflab/show/functions.h"
#include "tools/halflab/show/numbers.h"

namespace {

using halflab::show::ExactNumber;
using halflab::show::Function;
using halflab::show::functions;
using oracle::mpfr::Number;

constexpr int shown_bits = ExactNumber::leading_bit_count;

/// 1 + e^-x, so precisely that a tiny x is seen in it.
void inverse_sigmoid(mpfr_ptr result, mpfr_srcptr x) {
  mpfr_neg(result, x, MPFR_RNDZ);
  mpfr_exp(result, result, MPFR_RNDZ);
  mpfr_add_ui(result, result, 1, MPFR_RNDZ);
}

/// The leading bits of the function's value, toward zero; false where these are all of it.
bool toward_zero(mpfr_ptr result, const std::string& name, double x) {
  Number operand(53), wide(6000);  // a sigmoid comes as near to 1 as e^-4096
  mpfr_set_d(operand, x, MPFR_RNDZ);
  if (name == "exp") return mpfr_exp(result, operand, MPFR_RNDZ) != 0;
  if (name == "exp2") return mpfr_exp2(result, operand, MPFR_RNDZ) != 0;
  if (name == "log") return mpfr_log(result, operand, MPFR_RNDZ) != 0;
  if (name == "log2") return mpfr_log2(result, operand, MPFR_RNDZ) != 0;
  if (name == "sin") return mpfr_sin(result, operand, MPFR_RNDZ) != 0;
  if (name == "cos") return mpfr_cos(result, operand, MPFR_RNDZ) != 0;
  if (name == "tan") return mpfr_tan(result, operand, MPFR_RNDZ) != 0;
  if (name == "tanh") return mpfr_tanh(result, operand, MPFR_RNDZ) != 0;
  if (name == "erf") return mpfr_erf(result, operand, MPFR_RNDZ) != 0;
  REQUIRE((name == "sigmoid" || name == "silu"));
  inverse_sigmoid(wide, operand);
  if (name == "sigmoid") return mpfr_ui_div(result, 1, wide, MPFR_RNDZ) != 0;
  return mpfr_div(result, operand, wide, MPFR_RNDZ) != 0;
}

/// The bits of `number` are the leading ones of `expected`.
bool are_bits_of(const ExactNumber& number, mpfr_srcptr expected) {
  if (number.is_zero() || mpfr_zero_p(expected) != 0) return number.is_zero() && mpfr_zero_p(expected) != 0;
  if (number.is_negative() != (mpfr_signbit(expected) != 0)) return false;
  mpz_t significand;
  mpz_init(significand);
  const auto exponent = static_cast<int>(mpfr_get_z_2exp(significand, expected));
  mpz_abs(significand, significand);
  bool are_same = number.leading_exponent() == exponent + shown_bits - 1;
  for (int bit = 0; bit < shown_bits; ++bit)
    are_same = are_same &&
               number.bit(exponent + bit) == (mpz_tstbit(significand, static_cast<mp_bitcnt_t>(bit)) != 0);
  mpz_clear(significand);
  return are_same;
}

void check_at(const Function& function, double x) {
  CAPTURE(function.name);
  CAPTURE(x);
  Number expected(shown_bits);
  const bool has_more = toward_zero(expected, std::string(function.name), x);
  const auto value = function.value(x);
  REQUIRE(value.has_value() == (mpfr_nan_p(expected) == 0));
  if (!value) return;
  CHECK(value->has_more() == has_more);
  CHECK(are_bits_of(*value, expected));
}

TEST_CASE("halflab show: functions have the leading bits that MPFR gives them") {
  std::mt19937_64 random(20);
  std::uniform_real_distribution<double> significand(1, 2);
  for (const Function& function : functions()) {
    // Magnitudes of halves, and some of doubles' least.
    for (int exponent = -30; exponent < 12; exponent += 3) {
      const double x = std::ldexp(significand(random), exponent);
      for (const double operand : {x, -x, std::ldexp(1.0, exponent), -std::ldexp(1.0, exponent)})
        check_at(function, operand);
    }
    for (const int exponent :
         {-1074, -1000, -400, -250, -195, -194, -193, -192, -130, -98, -97, -96, -80, -53}) {
      check_at(function, std::ldexp(1.0, exponent));
      check_at(function, -std::ldexp(significand(random), exponent));
    }
    for (const double x : {12.6, 12.7, 79.9, 80.1, 159.9, 160.1}) {
      check_at(function, x);
      check_at(function, -x);
    }
    check_at(function, 1 + 0x1p-52);
    check_at(function, 1 - 0x1p-53);
  }
}

TEST_CASE("halflab show: functions of halves are those of fp16::math, in all roundings, with flags") {
  std::mt19937_64 random(21);
  for (const Function& function : functions()) {
    const auto* const in_halves = *std::ranges::find_if(
        fp16::math::unary_functions(),
        [&](const fp16::math::UnaryFunction* unary) { return unary->name() == function.name; });
    std::vector<std::uint64_t> codes{0,      0x8000, 0x7c00, 0xfc00, 0x7e00, 0x7d01,
                                     0x3c00, 0xbc00, 1,      0x8001, 0x7bff, 0xfbff};
    for (int i = 0; i < 15; ++i) codes.push_back(random() & 0xffff);
    const halflab::show::Node node{.operation = halflab::show::Operator::function, .function = &function};
    for (const std::uint64_t code : codes) {
      const std::uint64_t operands[] = {code};
      const auto exact = exact_result(fp16::binary16, node, operands);
      for (const fp16::NamedRounding& rounding : fp16::named_roundings) {
        if (rounding.rounding == fp16::Rounding::stochastic) continue;  // fp16::math has 13 bits for it
        const fp16::Attributes attributes{.rounding = rounding.rounding};
        const auto expected = (*in_halves)(static_cast<std::uint16_t>(code), attributes);
        const auto found = apply(fp16::binary16, node, operands, exact, attributes);
        CAPTURE(function.name);
        CAPTURE(code);
        CAPTURE(rounding.name);
        CHECK(found.code == expected.bits);
        CHECK(halflab::show::text_of(found.flags) == halflab::show::text_of(expected.flags));
      }
    }
  }
}

TEST_CASE("halflab show: functions are rounded in every format, and their limits have flags") {
  const auto shown = [](std::vector<std::string> words) {
    words.insert(words.begin(), "show");
    words.push_back("--json");
    return test::run_halflab(words).json().at("summary");
  };
  CHECK(shown({"exp(12)"}).at("flags").string() == "overflow, inexact");
  CHECK(shown({"exp(12)"}).at("exact").string() == "about 162754.791419003920808005");
  CHECK(shown({"exp(12)", "--format", "bfloat16"}).at("value").string() == "162816");
  CHECK(shown({"log(0)"}).at("flags").string() == "divide by zero");
  CHECK(shown({"log(-1)"}).at("flags").string() == "invalid");
  CHECK(shown({"log2(1024)"}).at("flags").string() == "none");
  CHECK(shown({"exp(1)/(exp(1)+exp(2))", "--format", "binary64"})
            .at("value")
            .string()
            .starts_with("0.26894142136999"));
}

}  // namespace
