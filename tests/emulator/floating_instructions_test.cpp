#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/emulator/floating_point.h"
#include "tests/emulator/run_ptx.h"

using emulator::testing::evaluate;
using emulator::testing::Value;

namespace {

std::uint32_t code(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
std::uint64_t code(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

constexpr std::uint32_t nan32 = 0x7fffffff;
constexpr std::uint64_t nan16 = 0x7fff, infinity16 = 0x7c00, one16 = 0x3c00;
constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint64_t of_floats(std::string_view instruction, std::vector<float> operands) {
  std::vector<Value> values;
  for (const float operand : operands) values.push_back({"f32", code(operand)});
  return evaluate(instruction, "f32", values);
}
std::uint64_t of_halves(std::string_view instruction, std::vector<std::uint64_t> operands) {
  std::vector<Value> values;
  for (const std::uint64_t operand : operands) values.push_back({"b16", operand});
  return evaluate(instruction, "b16", values);
}
std::uint64_t of_pairs(std::string_view instruction, std::vector<std::uint64_t> operands) {
  std::vector<Value> values;
  for (const std::uint64_t operand : operands) values.push_back({"b32", operand});
  return evaluate(instruction, "b32", values);
}

}  // namespace

TEST_CASE("binary32 is rounded once in each direction") {
  CHECK(of_floats("add.rn.f32 d, a, b", {1, 0x1p-24f}) == code(1.0f));
  CHECK(of_floats("add.f32 d, a, b", {1, 0x1.8p-24f}) == code(0x1.000002p0f));
  CHECK(of_floats("add.rp.f32 d, a, b", {1, 0x1p-60f}) == code(0x1.000002p0f));
  CHECK(of_floats("add.rm.f32 d, a, b", {-1, -0x1p-60f}) == code(-0x1.000002p0f));
  CHECK(of_floats("sub.rz.f32 d, a, b", {1, 0x1p-60f}) == code(0x1.fffffep-1f));
  CHECK(of_floats("mul.rz.f32 d, a, b", {0x1.000002p0f, 0x1.000002p0f}) == code(0x1.000004p0f));
  CHECK(of_floats("mul.rp.f32 d, a, b", {0x1.000002p0f, 0x1.000002p0f}) == code(0x1.000006p0f));
  CHECK(of_floats("fma.rn.f32 d, a, b, c", {0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f}) == code(0x1p-46f));
  CHECK(of_floats("div.rn.f32 d, a, b", {1, 3}) == 0x3eaaaaab);
  CHECK(of_floats("div.rz.f32 d, a, b", {1, 3}) == 0x3eaaaaaa);
  CHECK(of_floats("sqrt.rm.f32 d, a", {2}) == 0x3fb504f3);
  CHECK(of_floats("sqrt.rp.f32 d, a", {2}) == 0x3fb504f4);
  CHECK(of_floats("rcp.rn.f32 d, a", {3}) == 0x3eaaaaab);
  CHECK(of_floats("add.f32 d, a, 0f3F800000", {1}) == code(2.0f));
}

TEST_CASE("flushing, clamping and NaNs of binary32") {
  CHECK(of_floats("add.ftz.f32 d, a, b", {0x1p-127f, 0}) == 0);
  CHECK(of_floats("mul.ftz.f32 d, a, b", {-0x1p-100f, 0x1p-30f}) == 0x80000000);
  CHECK(of_floats("mul.f32 d, a, b", {-0x1p-100f, 0x1p-30f}) == code(-0x1p-130f));
  CHECK(of_floats("add.sat.f32 d, a, b", {1, 1}) == code(1.0f));
  CHECK(of_floats("add.sat.f32 d, a, b", {-1, -1}) == 0);
  CHECK(of_floats("sub.sat.f32 d, a, b", {infinity, infinity}) == 0);
  CHECK(of_floats("sub.f32 d, a, b", {infinity, infinity}) == nan32);
  CHECK(of_floats("min.f32 d, a, b", {NAN, 2}) == code(2.0f));
  CHECK(of_floats("min.NaN.f32 d, a, b", {NAN, 2}) == nan32);
  CHECK(of_floats("max.f32 d, a, b", {-0.0f, 0.0f}) == 0);
  CHECK(of_floats("min.f32 d, a, b", {0.0f, -0.0f}) == 0x80000000);
  CHECK(of_floats("neg.f32 d, a", {0}) == 0x80000000);
  CHECK(of_floats("abs.ftz.f32 d, a", {-0x1p-130f}) == 0);
  CHECK(of_floats("copysign.f32 d, a, b", {-0.0f, 3}) == code(-3.0f));
  CHECK(evaluate("testp.subnormal.f32 d, a", "pred", {{"f32", 1}}) == 1);
  CHECK(evaluate("testp.finite.f32 d, a", "pred", {{"f32", nan32}}) == 0);
}

TEST_CASE("binary64") {
  const auto of_doubles = [](std::string_view instruction, double a, double b) {
    return evaluate(instruction, "f64", {{"f64", code(a)}, {"f64", code(b)}});
  };
  CHECK(of_doubles("add.rn.f64 d, a, b", 1, 0x1p-53) == code(1.0));
  CHECK(of_doubles("add.rp.f64 d, a, b", 1, 0x1p-53) == code(0x1.0000000000001p0));
  CHECK(of_doubles("mul.f64 d, a, 0d4000000000000000", 1.5, 0) == code(3.0));
  CHECK(of_doubles("div.rn.f64 d, a, b", 1, 3) == code(1.0 / 3));
  CHECK(evaluate("setp.ltu.f64 d, a, b", "pred", {{"f64", code(double{NAN})}, {"f64", 0}}) == 1);
}

TEST_CASE("comparisons know NaN") {
  const auto predicate = [](std::string_view instruction, float a, float b) {
    return evaluate(instruction, "pred", {{"f32", code(a)}, {"f32", code(b)}});
  };
  CHECK(predicate("setp.lt.f32 d, a, b", NAN, 1) == 0);
  CHECK(predicate("setp.ltu.f32 d, a, b", NAN, 1) == 1);
  CHECK(predicate("setp.neu.f32 d, a, b", 1, 1) == 0);
  CHECK(predicate("setp.ne.f32 d, a, b", NAN, 1) == 0);
  CHECK(predicate("setp.eq.f32 d, a, b", 0, -0.0f) == 1);
  CHECK(predicate("setp.num.f32 d, a, b", NAN, 1) == 0);
  CHECK(predicate("setp.nan.f32 d, a, b", NAN, 1) == 1);
  CHECK(predicate("setp.gt.ftz.f32 d, a, b", 0x1p-130f, 0) == 0);
  CHECK(evaluate("set.geu.f16.f16 d, a, b", "b16", {{"b16", nan16}, {"b16", 0}}) == one16);
  CHECK(evaluate("set.lt.f16x2.f16x2 d, a, b", "b32", {{"b32", 0x3c00'0000}, {"b32", 0x4000'8000}}) ==
        0x3c00'0000);
  CHECK(evaluate("set.le.u32.f16x2 d, a, b", "b32", {{"b32", 0x3c00'0000}, {"b32", 0x0000'8000}}) ==
        0x0000'ffff);
  CHECK(evaluate("{ .reg .pred q; setp.lt.f16x2 q|d, a, b; }", "pred",
                 {{"b32", 0x0000'3c00}, {"b32", 0x3c00'3c00}}) == 1);
}

TEST_CASE("binary16 is rounded once, to nearest-even") {
  CHECK(of_halves("add.f16 d, a, b", {0x3c00, 0x1000}) == 0x3c00);     // 1 + 2^-11 is a tie
  CHECK(of_halves("add.rn.f16 d, a, b", {0x3c01, 0x1000}) == 0x3c02);  // odd: up
  CHECK(of_halves("sub.f16 d, a, b", {0x3c00, 0x3c00}) == 0);
  CHECK(of_halves("mul.f16 d, a, b", {0x7bff, 0x4000}) == infinity16);
  CHECK(of_halves("mul.f16 d, a, b", {0x0001, 0x3800}) == 0);       // 2^-25 is a tie with 0
  CHECK(of_halves("mul.f16 d, a, b", {0x0003, 0x3800}) == 0x0002);  // 1.5 units: to even
  CHECK(of_halves("mul.f16 d, a, b", {0x7c00, 0}) == nan16);
  CHECK(of_halves("fma.rn.f16 d, a, b, c", {0x3c01, 0x3c01, 0xbc02}) == 0x0010);  // 2^-20, not 0
  CHECK(of_halves("fma.rn.sat.f16 d, a, b, c", {0x4000, 0x4000, 0x3c00}) == one16);
  CHECK(of_halves("fma.rn.relu.f16 d, a, b, c", {0x4000, 0xc000, 0x3c00}) == 0);
  CHECK(of_halves("fma.rn.relu.f16 d, a, b, c", {0xfe00, 0xc000, 0x3c00}) == nan16);
  CHECK(of_halves("add.ftz.f16 d, a, b", {0x0200, 0x0200}) == 0);
  CHECK(of_halves("add.sat.f16 d, a, b", {0x7e00, 0x3c00}) == 0);
  CHECK(of_halves("neg.f16 d, a", {0x3c00}) == 0xbc00);
  CHECK(of_halves("abs.f16 d, a", {0xfc01}) == nan16);
  CHECK(of_halves("min.f16 d, a, b", {0x7e00, 0xbc00}) == 0xbc00);
  CHECK(of_halves("max.NaN.f16 d, a, b", {0x7e00, 0xbc00}) == nan16);
  CHECK(of_halves("max.f16 d, a, b", {0x8000, 0x0000}) == 0);
  CHECK(of_pairs("add.f16x2 d, a, b", {0x3c00'4000, 0x3c00'bc00}) == 0x4000'3c00);
  CHECK(of_pairs("fma.rn.f16x2 d, a, b, c", {0x3c00'4000, 0x4200'4000, 0x3c00'0000}) == 0x4400'4400);
}

TEST_CASE("a fused multiply-add is not rounded twice") {
  // 2^-11 (1 + 2^-10) (1 - 2^-10) is 2^-31 less than half a unit of 1 + 2^-10, and by way of binary32 a tie.
  CHECK(of_halves("fma.rn.f16 d, a, b, c", {0x1001, 0x3bfe, 0x3c01}) == 0x3c01);
  CHECK(of_halves("fma.rn.f16 d, a, b, c", {0x1000, 0x3c00, 0x3c01}) == 0x3c02);
  // 2048 + 1 is a tie, 2048 + 1 + 2^-10 is not.
  CHECK(of_halves("fma.rn.f16 d, a, b, c", {0x3c00, 0x3c00, 0x6800}) == 0x6800);
  CHECK(of_halves("fma.rn.f16 d, a, b, c", {0x3c01, 0x3c00, 0x6800}) == 0x6801);
}

TEST_CASE("halves and doubles convert into each other for all codes") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const emulator::Half half{static_cast<std::uint16_t>(bits)};
    const double value = emulator::to_double(half);
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 0x3ff);
    double expected = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(0x400 + fraction, exponent - 25);
    if (bits & 0x8000) expected = -expected;
    if (std::isnan(expected)) {
      wrong += !std::isnan(value);
      continue;
    }
    wrong += value != expected || std::signbit(value) != std::signbit(expected);
    wrong += emulator::half_from_double(value, emulator::Rounding::nearest_even).code != bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("conversions round in each direction, clamp and extend") {
  const auto to_half = [](std::string_view instruction, float a) {
    return evaluate(instruction, "b16", {{"f32", code(a)}});
  };
  CHECK(to_half("cvt.rn.f16.f32 d, a", 0x1.002p0f) == 0x3c00);
  CHECK(to_half("cvt.rp.f16.f32 d, a", 0x1.000002p0f) == 0x3c01);
  CHECK(to_half("cvt.rm.f16.f32 d, a", -0x1.000002p0f) == 0xbc01);
  CHECK(to_half("cvt.rz.f16.f32 d, a", 1e9f) == 0x7bff);
  CHECK(to_half("cvt.rn.f16.f32 d, a", 65519.996f) == 0x7bff);
  CHECK(to_half("cvt.rn.f16.f32 d, a", 65520.0f) == infinity16);
  CHECK(to_half("cvt.rn.f16.f32 d, a", NAN) == nan16);
  CHECK(to_half("cvt.rn.relu.f16.f32 d, a", -3) == 0);
  CHECK(to_half("cvt.rn.sat.f16.f32 d, a", 3) == one16);
  CHECK(evaluate("cvt.rn.f16.f64 d, a", "b16", {{"f64", code(0x1.002000001p0)}}) == 0x3c01);
  CHECK(evaluate("cvt.rn.f16x2.f32 d, a, b", "b32", {{"f32", code(1.0f)}, {"f32", code(2.0f)}}) ==
        0x3c00'4000);
  CHECK(evaluate("cvt.f32.f16 d, a", "f32", {{"b16", 0x0001}}) == code(0x1p-24f));
  CHECK(evaluate("cvt.rni.f16.f16 d, a", "b16", {{"b16", 0x4100}}) == 0x4000);  // 2.5
  CHECK(evaluate("cvt.rpi.f16.f16 d, a", "b16", {{"b16", 0xb800}}) == 0x8000);  // -0.5
  CHECK(evaluate("cvt.rmi.f32.f32 d, a", "f32", {{"f32", code(-0.5f)}}) == code(-1.0f));
  CHECK(evaluate("cvt.rzi.s32.f32 d, a", "b32", {{"f32", code(-2.9f)}}) == 0xfffffffe);
  CHECK(evaluate("cvt.rni.s32.f32 d, a", "b32", {{"f32", code(2.5f)}}) == 2);
  CHECK(evaluate("cvt.rzi.u32.f32 d, a", "b32", {{"f32", code(-2.9f)}}) == 0);
  CHECK(evaluate("cvt.rzi.s32.f32 d, a", "b32", {{"f32", code(1e20f)}}) == 0x7fffffff);
  CHECK(evaluate("cvt.rzi.s32.f32 d, a", "b32", {{"f32", nan32}}) == 0);
  CHECK(evaluate("cvt.rzi.s64.f16 d, a", "b64", {{"b16", nan16}}) == 0x8000'0000'0000'0000);
  CHECK(evaluate("cvt.rzi.u64.f32 d, a", "b64", {{"f32", code(0x1p63f)}}) == 0x8000'0000'0000'0000);
  CHECK(evaluate("cvt.rzi.s8.f16 d, a", "b32", {{"b16", 0xd800}}) == 0xffffff80);  // -128
  CHECK(evaluate("cvt.rn.f16.s32 d, a", "b16", {{"b32", 2049}}) == 0x6800);
  CHECK(evaluate("cvt.rp.f16.u64 d, a", "b16", {{"b64", 2049}}) == 0x6801);
  CHECK(evaluate("cvt.rn.f32.u64 d, a", "f32", {{"b64", ~std::uint64_t{0}}}) == code(0x1p64f));
  CHECK(evaluate("cvt.rz.f32.s64 d, a", "f32", {{"b64", ~std::uint64_t{0} >> 1}}) == code(0x1.fffffep62f));
  CHECK(evaluate("cvt.rn.f32.s32 d, a", "f32", {{"b32", 0xffffffff}}) == code(-1.0f));
  CHECK(evaluate("cvt.s64.s32 d, a", "b64", {{"b32", 0x80000000}}) == 0xffff'ffff'8000'0000);
  CHECK(evaluate("cvt.u64.u32 d, a", "b64", {{"b32", 0x80000000}}) == 0x8000'0000);
  CHECK(evaluate("cvt.s32.s8 d, a", "b32", {{"b32", 0x1234'56ff}}) == 0xffffffff);
  CHECK(evaluate("cvt.u16.u64 d, a", "b16", {{"b64", 0x1234'5678'9abc'def0}}) == 0xdef0);
  CHECK(evaluate("cvt.sat.u8.s32 d, a", "b32", {{"b32", 300}}) == 255);
  CHECK(evaluate("cvt.sat.s8.s32 d, a", "b32", {{"b32", 0xffffff00}}) == 0xffffff80);
}

TEST_CASE("approximations are the rounded values") {
  CHECK(of_floats("rcp.approx.ftz.f32 d, a", {3}) == 0x3eaaaaab);
  CHECK(of_floats("rcp.approx.ftz.f32 d, a", {0x1p-130f}) == code(infinity));
  CHECK(of_floats("rsqrt.approx.f32 d, a", {4}) == code(0.5f));
  CHECK(of_floats("sqrt.approx.f32 d, a", {9}) == code(3.0f));
  CHECK(of_floats("ex2.approx.ftz.f32 d, a", {-3}) == code(0.125f));
  CHECK(of_floats("lg2.approx.f32 d, a", {8}) == code(3.0f));
  CHECK(of_floats("lg2.approx.f32 d, a", {-8}) == nan32);
  CHECK(of_floats("sin.approx.f32 d, a", {0}) == 0);
  CHECK(of_floats("cos.approx.f32 d, a", {0}) == code(1.0f));
  CHECK(of_halves("tanh.approx.f16 d, a", {0x7c00}) == one16);
  CHECK(of_pairs("ex2.approx.f16x2 d, a", {0x3c00'bc00}) == 0x4000'3800);
}
