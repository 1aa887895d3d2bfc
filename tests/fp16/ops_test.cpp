#include "fp16/ops.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "fp16/operations.h"
#include "tests/oracle/compilers_half.h"

namespace {

using fp16::find_operation;
using fp16::OperandCodes;
using fp16::Operation;

using Oracle = oracle::CompilersHalf;

double value_of(std::uint64_t code) {
  return static_cast<double>(std::bit_cast<Oracle>(static_cast<std::uint16_t>(code)));
}
std::uint64_t rounded(double value) {
  if (std::isnan(value)) return 0x7fff;
  return std::bit_cast<std::uint16_t>(static_cast<Oracle>(value));
}

std::uint64_t apply(const char* name, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
  const Operation* operation = find_operation(name);
  REQUIRE(operation != nullptr);
  return operation->apply({a, b, c});
}

/// All exponents with all, of both signs, infinities and NaNs.
template <typename Check>
void for_pairs(Check check) {
  for (std::uint64_t a = 0; a < 0x10000; a += 61) {
    for (std::uint64_t b = 0; b < 0x10000; b += 47) check(a, b);
  }
  for (const std::uint64_t a : {0x0000, 0x8000, 0x7c00, 0xfc00, 0x7c01, 0xffff, 0x3c00, 0x7bff}) {
    for (std::uint64_t b = 0; b < 0x10000; b += 3) check(a, b);
  }
}

}  // namespace

TEST_CASE("operations have names of their own and can be found by them") {
  std::set<std::string> names;
  for (const Operation& operation : fp16::operations()) {
    CHECK(names.insert(operation.name).second);
    CHECK(find_operation(operation.name) == &operation);
    CHECK(operation.arity >= 1);
    for (int i = 0; i < 3; ++i) CHECK((operation.operand_bits[i] != 0) == (i < operation.arity));
  }
  CHECK(names.size() == 92);
  CHECK(find_operation("modulo") == nullptr);
}

TEST_CASE("arithmetic of operations is double arithmetic rounded once") {
  int wrong = 0;
  for_pairs([&](std::uint64_t a, std::uint64_t b) {
    const double x = value_of(a), y = value_of(b);
    // Sums and products of two halves are exact in double, quotients far enough from any tie.
    wrong += fp16::ops::Add{}(fp16::half::from_bits(a), fp16::half::from_bits(b)).bits() != rounded(x + y);
    wrong +=
        fp16::ops::Subtract{}(fp16::half::from_bits(a), fp16::half::from_bits(b)).bits() != rounded(x - y);
    wrong +=
        fp16::ops::Multiply{}(fp16::half::from_bits(a), fp16::half::from_bits(b)).bits() != rounded(x * y);
    wrong += fp16::ops::Divide{}(fp16::half::from_bits(a), fp16::half::from_bits(b)).bits() != rounded(x / y);
  });
  CHECK(wrong == 0);
}

TEST_CASE("fma of operations is the product and sum in double rounded once") {
  int wrong = 0;
  for_pairs([&](std::uint64_t a, std::uint64_t b) {
    const std::uint64_t c = (a * 2654435761u ^ b * 40503u) & 0xffff;
    // A sum that is no tie of binary16 is at least 2^-34 of it away from one, so that double loses nothing.
    wrong += apply("fma", a, b, c) != rounded(value_of(a) * value_of(b) + value_of(c));
  });
  CHECK(wrong == 0);
}

TEST_CASE("saturated results lie in 0 ... 1") {
  CHECK(apply("add saturated", 0x3c00, 0x3c00) == 0x3c00);  // 2
  CHECK(apply("add saturated", 0x3800, 0x3400) == 0x3a00);  // 0.75
  CHECK(apply("subtract saturated", 0x3800, 0x3c00) == 0);  // -0.5
  CHECK(apply("add saturated", 0x8000, 0x8000) == 0);       // -0
  CHECK(apply("add saturated", 0x7c00, 0xfc00) == 0);       // NaN
  CHECK(apply("multiply saturated", 0x7c00, 0x3c00) == 0x3c00);
  CHECK(apply("fma saturated", 0x3800, 0x3800, 0x3400) == 0x3800);
}

TEST_CASE("relu replaces what is negative") {
  CHECK(apply("fma relu", 0x3c00, 0xbc00, 0x3800) == 0);
  CHECK(apply("fma relu", 0x3c00, 0x3c00, 0x3c00) == 0x4000);
  CHECK(apply("fma relu", 0x8000, 0x3c00, 0x8000) == 0);  // -0
  CHECK(apply("fma relu", 0xfe00, 0x3c00, 0x3c00) == 0x7fff);
}

TEST_CASE("minima and maxima differ in what they do with NaNs") {
  CHECK(apply("minimum_number", 0x7e00, 0x3c00) == 0x3c00);
  CHECK(apply("minimum", 0x7e00, 0x3c00) == 0x7fff);
  CHECK(apply("maximum_number", 0x3c00, 0xfe01) == 0x3c00);
  CHECK(apply("maximum", 0x3c00, 0xfe01) == 0x7fff);
  CHECK(apply("maximum_number", 0x7e00, 0x7e00) == 0x7fff);
  CHECK(apply("minimum_number", 0x0000, 0x8000) == 0x8000);
  CHECK(apply("maximum_number", 0x8000, 0x0000) == 0x0000);
}

TEST_CASE("comparisons agree with those of double") {
  int wrong = 0;
  for_pairs([&](std::uint64_t a, std::uint64_t b) {
    const double x = value_of(a), y = value_of(b);
    wrong += apply("compare =", a, b) != (x == y);
    wrong += apply("compare <", a, b) != (x < y);
    wrong += apply("compare <=", a, b) != (x <= y);
    wrong += apply("compare >", a, b) != (x > y);
    wrong += apply("compare >=", a, b) != (x >= y);
    wrong += apply("compare <>?", a, b) != (x != y);
    wrong += apply("compare <>", a, b) != (x < y || x > y);
    wrong += apply("compare =?", a, b) != !(x < y || x > y);
    wrong += apply("compare <?", a, b) != !(x >= y);
    wrong += apply("compare <=?", a, b) != !(x > y);
    wrong += apply("compare >?", a, b) != !(x <= y);
    wrong += apply("compare >=?", a, b) != !(x < y);
  });
  CHECK(wrong == 0);
}

TEST_CASE("operations of one half agree with double") {
  int wrong = 0;
  for (std::uint64_t a = 0; a < 0x10000; ++a) {
    const double x = value_of(a);
    wrong += apply("negate", a) != rounded(-x);
    wrong += apply("abs", a) != rounded(std::fabs(x));
    wrong += apply("sqrt", a) != rounded(std::sqrt(x));
    wrong += apply("reciprocal", a) != rounded(1 / x);
    wrong += apply("round_to_integral nearest_even", a) != rounded(std::nearbyint(x));
    wrong += apply("round_to_integral toward_zero", a) != rounded(std::trunc(x));
    wrong += apply("round_to_integral toward_positive", a) != rounded(std::ceil(x));
    wrong += apply("round_to_integral toward_negative", a) != rounded(std::floor(x));
    wrong += apply("is_nan", a) != std::isnan(x);
    wrong += static_cast<std::int32_t>(apply("infinity_sign", a)) != (std::isinf(x) ? (x < 0 ? -1 : 1) : 0);
    const auto widened = std::bit_cast<float>(static_cast<std::uint32_t>(apply("to_binary32", a)));
    wrong += !(widened == x || (std::isnan(x) && std::bit_cast<std::uint32_t>(widened) == 0x7fffffff));
  }
  CHECK(wrong == 0);
}

TEST_CASE("conversions to integers saturate, and say 0 or the highest bit for a NaN") {
  CHECK(apply("to_int32 toward_zero", 0xbe00) == 0xffffffff);  // -1.5
  CHECK(apply("to_int32 toward_negative", 0xbe00) == 0xfffffffe);
  CHECK(apply("to_int32 toward_positive", 0x3e00) == 2);
  CHECK(apply("to_int32 nearest_even", 0x4100) == 2);  // 2.5
  CHECK(apply("to_int16 nearest_even", 0x7bff) == 0x7fff);
  CHECK(apply("to_uint16 toward_zero", 0xbc00) == 0);
  CHECK(apply("to_int8 toward_zero", 0xfc00) == 0x80);
  CHECK(apply("to_uint32 nearest_even", 0x7c00) == 0xffffffff);
  CHECK(apply("to_int32 nearest_even", 0x7e00) == 0);
  CHECK(apply("to_int64 nearest_even", 0x7e00) == 0x8000000000000000);
  CHECK(apply("to_uint64 toward_zero", 0xfe00) == 0x8000000000000000);
}

TEST_CASE("conversions from other types round in their direction") {
  CHECK(apply("from_int32 nearest_even", 2049) == 0x6800);
  CHECK(apply("from_int32 toward_positive", 2049) == 0x6801);
  CHECK(apply("from_int32 toward_negative", 0xfffff7ff) == 0xe801);  // -2049
  CHECK(apply("from_uint16 nearest_even", 65535) == 0x7c00);
  CHECK(apply("from_uint16 toward_zero", 65535) == 0x7bff);
  CHECK(apply("from_binary32 toward_zero", std::bit_cast<std::uint32_t>(1e6f)) == 0x7bff);
  CHECK(apply("from_binary32 nearest_even", 0xffc00001) == 0x7fff);
  // A double just above a tie, which by way of float would be the tie.
  CHECK(apply("from_binary64 nearest_even", std::bit_cast<std::uint64_t>(1.0 + 0x1p-11 + 0x1p-40)) == 0x3c01);
}
