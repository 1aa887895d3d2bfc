#include <doctest/doctest.h>

#include "tests/emulator/run_ptx.h"

using emulator::testing::evaluate;
using emulator::testing::Value;

namespace {

constexpr std::uint64_t minus(std::uint64_t value) {
  return 0 - value;
}
std::uint64_t u32(std::uint64_t value) {
  return value & 0xffff'ffff;
}

std::uint64_t of_32_bits(std::string_view instruction, std::vector<std::uint64_t> operands) {
  std::vector<Value> values;
  for (const std::uint64_t operand : operands) values.push_back({"b32", operand});
  return evaluate(instruction, "b32", values);
}
std::uint64_t of_64_bits(std::string_view instruction, std::vector<std::uint64_t> operands) {
  std::vector<Value> values;
  for (const std::uint64_t operand : operands) values.push_back({"b64", operand});
  return evaluate(instruction, "b64", values);
}
std::uint64_t of_16_bits(std::string_view instruction, std::vector<std::uint64_t> operands) {
  std::vector<Value> values;
  for (const std::uint64_t operand : operands) values.push_back({"b16", operand});
  return evaluate(instruction, "b16", values);
}

}  // namespace

TEST_CASE("sums wrap, and saturate if asked to") {
  CHECK(of_32_bits("add.s32 d, a, b", {0x7fffffff, 1}) == 0x80000000);
  CHECK(of_32_bits("add.sat.s32 d, a, b", {0x7fffffff, 1}) == 0x7fffffff);
  CHECK(of_32_bits("sub.sat.s32 d, a, b", {0x80000000, 1}) == 0x80000000);
  CHECK(of_32_bits("sub.u32 d, a, b", {3, 5}) == u32(minus(2)));
  CHECK(of_16_bits("add.u16 d, a, b", {0xffff, 2}) == 1);
  CHECK(of_64_bits("add.s64 d, a, -1", {0}) == minus(1));
  CHECK(of_32_bits("neg.s32 d, a", {0x80000000}) == 0x80000000);
  CHECK(of_32_bits("abs.s32 d, a", {u32(minus(7))}) == 7);
  CHECK(of_32_bits("sad.u32 d, a, b, c", {3, 10, 100}) == 107);
  CHECK(of_32_bits("sad.s32 d, a, b, c", {u32(minus(3)), 10, 100}) == 113);
}

TEST_CASE("products by halves and whole") {
  CHECK(of_32_bits("mul.lo.u32 d, a, b", {0x10001, 0x10001}) == 0x20001);
  CHECK(of_32_bits("mul.hi.u32 d, a, b", {0xffffffff, 0xffffffff}) == 0xfffffffe);
  CHECK(of_32_bits("mul.hi.s32 d, a, b", {0xffffffff, 0xffffffff}) == 0);
  CHECK(of_32_bits("mul.hi.s32 d, a, b", {0x80000000, 2}) == 0xffffffff);
  CHECK(of_64_bits("mul.hi.u64 d, a, b", {minus(1), minus(1)}) == minus(2));
  CHECK(of_64_bits("mul.hi.s64 d, a, b", {minus(1), 1}) == minus(1));
  CHECK(evaluate("mul.wide.u32 d, a, b", "b64", {{"b32", 0xffffffff}, {"b32", 2}}) == 0x1fffffffe);
  CHECK(evaluate("mul.wide.s32 d, a, b", "b64", {{"b32", 0xffffffff}, {"b32", 2}}) == minus(2));
  CHECK(evaluate("mul.wide.u16 d, a, b", "b32", {{"b16", 0xffff}, {"b16", 0xffff}}) == 0xfffe0001);
  CHECK(of_32_bits("mad.lo.s32 d, a, b, c", {7, 6, u32(minus(2))}) == 40);
  CHECK(of_32_bits("mad.hi.u32 d, a, b, c", {0x80000000, 6, 1}) == 4);
  CHECK(evaluate("mad.wide.s16 d, a, b, c", "b32", {{"b16", 0xffff}, {"b16", 5}, {"b32", 3}}) ==
        u32(minus(2)));
}

TEST_CASE("quotients and remainders have C's signs") {
  CHECK(of_32_bits("div.s32 d, a, b", {u32(minus(7)), 2}) == u32(minus(3)));
  CHECK(of_32_bits("rem.s32 d, a, b", {u32(minus(7)), 2}) == u32(minus(1)));
  CHECK(of_32_bits("div.u32 d, a, b", {u32(minus(7)), 2}) == 0x7ffffffc);
  CHECK(of_64_bits("rem.u64 d, a, b", {1000003, 1000}) == 3);
  CHECK(of_32_bits("div.s32 d, a, b", {0x80000000, u32(minus(1))}) == 0x80000000);
}

TEST_CASE("carries go from one word to the next") {
  const char* add = "{ add.cc.u32 d, a, b; addc.u32 d, c, e; }";
  CHECK(of_32_bits(add, {0xffffffff, 1, 10, 20}) == 31);
  CHECK(of_32_bits(add, {0xfffffffe, 1, 10, 20}) == 30);
  const char* subtract = "{ sub.cc.u32 d, a, b; subc.u32 d, c, e; }";
  CHECK(of_32_bits(subtract, {0, 1, 10, 5}) == 4);
  CHECK(of_32_bits(subtract, {1, 1, 10, 5}) == 5);
  const char* multiply = "{ mad.lo.cc.u32 d, a, b, c; madc.hi.u32 d, a, b, e; }";
  CHECK(of_32_bits(multiply, {0xffffffff, 0xffffffff, 0xffffffff, 0}) == 0xffffffff);
}

TEST_CASE("logic and shifts clamp their counts") {
  CHECK(of_32_bits("and.b32 d, a, b", {0xff0f, 0x0ff0}) == 0x0f00);
  CHECK(of_16_bits("not.b16 d, a", {0x00ff}) == 0xff00);
  CHECK(of_32_bits("xor.b32 d, a, b", {0xff0f, 0x0ff0}) == 0xf0ff);
  CHECK(of_32_bits("cnot.b32 d, a", {0}) == 1);
  CHECK(evaluate("shl.b64 d, a, b", "b64", {{"b64", 1}, {"b32", 64}}) == 0);
  CHECK(evaluate("shl.b64 d, a, b", "b64", {{"b64", 1}, {"b32", 63}}) == std::uint64_t{1} << 63);
  CHECK(of_32_bits("shr.u32 d, a, b", {0x80000000, 31}) == 1);
  CHECK(of_32_bits("shr.s32 d, a, b", {0x80000000, 40}) == 0xffffffff);
  CHECK(evaluate("shr.s16 d, a, b", "b16", {{"b16", 0x8000}, {"b32", 4}}) == 0xf800);
  CHECK(of_32_bits("shf.l.wrap.b32 d, a, b, c", {0x12345678, 0x9abcdef0, 8}) == 0xbcdef012);
  CHECK(of_32_bits("shf.r.wrap.b32 d, a, b, c", {0x12345678, 0x9abcdef0, 8}) == 0xf0123456);
  CHECK(of_32_bits("shf.r.clamp.b32 d, a, b, c", {0x12345678, 0x9abcdef0, 40}) == 0x9abcdef0);
  CHECK(of_32_bits("lop3.b32 d, a, b, c, 0xE8", {0xff00, 0xf0f0, 0xcccc}) == 0xfcc0);
}

TEST_CASE("bit fields") {
  CHECK(of_32_bits("bfe.u32 d, a, b, c", {0xabcd1234, 8, 8}) == 0x12);
  CHECK(of_32_bits("bfe.s32 d, a, b, c", {0xabcd1234, 16, 8}) == u32(minus(0x33)));
  CHECK(of_32_bits("bfe.s32 d, a, b, c", {0x80000000, 28, 32}) == u32(minus(8)));
  CHECK(of_32_bits("bfe.s32 d, a, b, c", {0x80000000, 40, 4}) == 0xffffffff);
  CHECK(of_32_bits("bfe.u32 d, a, b, c", {0x80000000, 0, 0}) == 0);
  CHECK(of_32_bits("bfi.b32 d, a, b, c, e", {0xff, 0, 4, 4}) == 0xf0);
  CHECK(of_32_bits("bfi.b32 d, a, b, c, e", {0, 0xffffffff, 30, 8}) == 0x3fffffff);
  CHECK(of_32_bits("bfind.u32 d, a", {0}) == 0xffffffff);
  CHECK(of_32_bits("bfind.u32 d, a", {0x00010000}) == 16);
  CHECK(of_32_bits("bfind.s32 d, a", {u32(minus(1))}) == 0xffffffff);
  CHECK(of_32_bits("bfind.shiftamt.u32 d, a", {0x00010000}) == 15);
  CHECK(of_32_bits("brev.b32 d, a", {0x00000003}) == 0xc0000000);
  CHECK(of_32_bits("popc.b32 d, a", {0xf0f0}) == 8);
  CHECK(evaluate("clz.b64 d, a", "b32", {{"b64", 1}}) == 63);
  CHECK(evaluate("clz.b32 d, a", "b32", {{"b32", 0}}) == 32);
  CHECK(of_32_bits("prmt.b32 d, a, b, c", {0x33221100, 0x77665544, 0x6420}) == 0x66442200);
  CHECK(of_32_bits("prmt.b32 d, a, b, c", {0x33228100, 0, 0x9989}) == 0xffff00ff);
}

TEST_CASE("minima and maxima know signs") {
  CHECK(of_32_bits("min.s32 d, a, b", {u32(minus(1)), 1}) == u32(minus(1)));
  CHECK(of_32_bits("min.u32 d, a, b", {u32(minus(1)), 1}) == 1);
  CHECK(of_64_bits("max.u64 d, a, b", {minus(1), 1}) == minus(1));
  CHECK(of_16_bits("max.s16 d, a, b", {0xffff, 0}) == 0);
}

TEST_CASE("comparisons, predicates and selections") {
  const auto predicate = [](std::string_view instruction, std::uint64_t a, std::uint64_t b) {
    return evaluate(instruction, "pred", {{"b32", a}, {"b32", b}});
  };
  CHECK(predicate("setp.lt.s32 d, a, b", 0xffffffff, 0) == 1);
  CHECK(predicate("setp.lt.u32 d, a, b", 0xffffffff, 0) == 0);
  CHECK(predicate("setp.lo.u32 d, a, b", 0, 0xffffffff) == 1);
  CHECK(predicate("setp.hs.u32 d, a, b", 5, 5) == 1);
  CHECK(predicate("setp.ne.b32 d, a, b", 5, 5) == 0);
  CHECK(evaluate("setp.eq.and.s32 d, a, b, c", "pred", {{"b32", 1}, {"b32", 1}, {"pred", 0}}) == 0);
  CHECK(evaluate("setp.eq.and.s32 d, a, b, !c", "pred", {{"b32", 1}, {"b32", 1}, {"pred", 0}}) == 1);
  CHECK(evaluate("setp.eq.xor.s32 d, a, b, c", "pred", {{"b32", 1}, {"b32", 1}, {"pred", 1}}) == 0);
  CHECK(evaluate("{ .reg .pred q; setp.eq.or.s32 q|d, a, b, c; }", "pred",
                 {{"b32", 1}, {"b32", 1}, {"pred", 0}}) == 0);
  CHECK(of_32_bits("set.lt.u32.s32 d, a, b", {0, 1}) == 0xffffffff);
  CHECK(of_32_bits("set.lt.f32.s32 d, a, b", {0, 1}) == 0x3f800000);
  CHECK(evaluate("selp.b32 d, a, b, c", "b32", {{"b32", 7}, {"b32", 9}, {"pred", 0}}) == 9);
  CHECK(of_32_bits("slct.b32.s32 d, a, b, c", {7, 9, u32(minus(1))}) == 9);
  CHECK(evaluate("and.pred d, a, b", "pred", {{"pred", 1}, {"pred", 0}}) == 0);
  CHECK(evaluate("not.pred d, a", "pred", {{"pred", 0}}) == 1);
}

TEST_CASE("vectors are packed from the low bits up") {
  CHECK(evaluate("mov.b32 d, {a, b}", "b32", {{"b16", 0x1111}, {"b16", 0x2222}}) == 0x22221111);
  CHECK(evaluate("mov.b64 d, {a, b}", "b64", {{"b32", 1}, {"b32", 2}}) == 0x2'00000001);
  CHECK(evaluate("{ .reg .b32 low; mov.b64 {low, d}, a; }", "b32", {{"b64", 0x2'00000001}}) == 2);
  CHECK(evaluate("{ .reg .b16 x, y; mov.b32 {x, y}, a; mov.b32 d, {y, x}; }", "b32", {{"b32", 0x22221111}}) ==
        0x11112222);
}

TEST_CASE("what the emulator does not know is named") {
  CHECK_THROWS_WITH(of_32_bits("dp4a.u32.u32 d, a, b, c", {1, 2, 3}),
                    "PTX \"dp4a.u32.u32 d, a, b, c\": the emulator does not know this instruction");
  CHECK_THROWS_WITH(of_32_bits("add.wrong.u32 d, a, b", {1, 2}),
                    "PTX \"add.wrong.u32 d, a, b\": the emulator does not know .wrong here");
  CHECK_THROWS_WITH(evaluate("add.u32 d, a, b", "b32", {{"b32", 1}, {"b64", 1}}),
                    "PTX \"add.u32 d, a, b\": register b is not of 4 bytes");
}
