/// What RISC-V's manual says of Zfh, by hand: the models of its rows have these outcomes.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "experiments/cpu/instructions/family.h"

namespace {

using namespace experiments::validate_cpu;

const Instruction& row(const std::string& name) {
  const std::vector<Instruction>& rows = riscv64_instructions();
  const auto found = std::ranges::find(rows, name, &Instruction::name);
  REQUIRE_MESSAGE(found != rows.end(), name);
  return *found;
}

struct Expected {
  std::string name;
  Operands operands;
  std::uint64_t value;
  Exceptions exceptions = 0;
};

void check(const std::vector<Expected>& all) {
  for (const Expected& each : all) {
    const Instruction& instruction = row(each.name);
    const Outcome outcome = instruction.model(each.operands, instruction.mode);
    INFO(each.name, " of ", each.operands.a, ", ", each.operands.b, ", ", each.operands.c);
    CHECK(outcome.value == each.value);
    CHECK(exceptions_text(outcome.exceptions) == exceptions_text(each.exceptions));
  }
}

constexpr std::uint16_t one = 0x3C00, minus_one = 0xBC00, two = 0x4000, infinite = 0x7C00,
                        signalling = 0x7C01, quiet = 0x7E01, canonical = 0x7E00;
constexpr std::uint64_t ones = ~std::uint64_t{0};

}  // namespace

TEST_CASE("RISC-V: results are rounded in five directions, by frm or by the instruction itself") {
  // 2048 + 1 lies in the middle of 2048 and 2050.
  const std::pair<const char*, std::uint64_t> sums[] = {
      {"", 0x6800}, {", rtz", 0x6800}, {", rdn", 0x6800}, {", rup", 0x6801}, {", rmm", 0x6801}};
  for (const auto& [rounding, value] : sums) {
    const std::string by_instruction = *rounding == '\0' ? ", rne" : rounding;
    check({{std::string("fadd.h f, f, f") + rounding, {0x6800, one}, value, inexact},
           {"fadd.h f, f, f" + by_instruction + ", whatever frm", {0x6800, one}, value, inexact}});
  }
  check({{"fadd.h f, f, f, rdn", {one, minus_one}, 0x8000}, {"fadd.h f, f, f", {one, minus_one}, 0x0000}});
}

TEST_CASE("RISC-V: NaNs are canonical, and tininess is seen after rounding") {
  check(
      {{"fadd.h f, f, f", {quiet, one}, canonical},
       {"fadd.h f, f, f", {0xFE00, one}, canonical},
       {"fadd.h f, f, f", {one, signalling}, canonical, invalid},
       {"fsub.h f, f, f", {infinite, infinite}, canonical, invalid},
       {"fsqrt.h f, f", {minus_one}, canonical, invalid},
       {"fdiv.h f, f, f", {one, 0x8000}, 0xFC00, divide_by_zero},
       // 2^-14 (1 + 2^-10) (1 - 2^-10) is tiny, and no more so once it is rounded; 2^-14 (1 - 2^-11) still is.
       {"fmul.h f, f, f", {0x0401, 0x3BFE}, 0x0400, inexact},
       {"fmul.h f, f, f", {0x0400, 0x3BFF}, 0x0400, underflow | inexact}});
}

TEST_CASE("RISC-V: fused multiply-add and its kin, and an infinity times zero with a quiet NaN") {
  const Operands numbers{two, 0x4200, one};
  check({{"fmadd.h f, f, f, f", numbers, 0x4700},
         {"fmsub.h f, f, f, f", numbers, 0x4500},
         {"fnmsub.h f, f, f, f", numbers, 0xC500},
         {"fnmadd.h f, f, f, f", numbers, 0xC700}});
  for (const char* name : {"fmadd.h", "fmsub.h", "fnmsub.h", "fnmadd.h"}) {
    const std::string specials = std::string(name) + " f, f, f, f, specials";
    check({{specials, {infinite, 0x0000, quiet}, canonical, invalid},
           {specials, {0x8000, infinite, canonical}, canonical, invalid},
           {specials, {infinite, one, quiet}, canonical}});
    const Operands invalid_product{0x0000, infinite, quiet};
    CHECK(row(specials).model(invalid_product, row(specials).mode).is_by_rule);
  }
}

TEST_CASE("RISC-V: the special triples have an infinity times a zero with every NaN") {
  const Domain& domain = *row("fmadd.h f, f, f, f, specials").domain;
  std::set<std::uint64_t> added;
  for (std::uint32_t index = 0; index < domain.inputs; ++index) {
    const Operands operands = domain.at(0, index);
    if (operands.a == infinite && operands.b == 0) added.insert(operands.c);
  }
  CHECK(added.size() == 40);
  for (const std::uint64_t nan : {0x7C01, 0x7DFF, 0x7E00, 0xFE00, 0x7E01, 0xFFFF}) CHECK(added.contains(nan));
}

TEST_CASE("RISC-V: minimum and maximum are those of 2019, and comparisons quiet or signalling") {
  check({{"fmin.h f, f, f", {0x0000, 0x8000}, 0x8000},
         {"fmax.h f, f, f", {0x8000, 0x0000}, 0x0000},
         {"fmin.h f, f, f", {quiet, one}, one},
         {"fmax.h f, f, f", {one, signalling}, one, invalid},
         {"fmin.h f, f, f", {quiet, quiet}, canonical},
         {"feq.h x, f, f", {0x8000, 0x0000}, 1},
         {"feq.h x, f, f", {quiet, one}, 0},
         {"feq.h x, f, f", {signalling, one}, 0, invalid},
         {"flt.h x, f, f", {minus_one, one}, 1},
         {"flt.h x, f, f", {quiet, one}, 0, invalid},
         {"fle.h x, f, f", {one, one}, 1}});
}

TEST_CASE("RISC-V: integers saturate, of a NaN upward, and 32 bits extend their sign") {
  check({{"fcvt.w.h x, f", {quiet}, 0x7FFFFFFF, invalid},
         {"fcvt.w.h x, f", {0xFC00}, 0xFFFFFFFF80000000, invalid},
         {"fcvt.w.h x, f", {0x4100}, 2, inexact},
         {"fcvt.w.h x, f, rmm", {0x4100}, 3, inexact},
         {"fcvt.w.h x, f, rup, whatever frm", {0xC100}, ones - 1, inexact},
         {"fcvt.wu.h x, f", {canonical}, ones, invalid},
         {"fcvt.wu.h x, f", {infinite}, ones, invalid},
         {"fcvt.wu.h x, f", {minus_one}, 0, invalid},
         {"fcvt.wu.h x, f, rtz", {0xB400}, 0, inexact},
         {"fcvt.l.h x, f", {signalling}, ones >> 1, invalid},
         {"fcvt.lu.h x, f", {quiet}, ones, invalid},
         {"fcvt.lu.h x, f", {0x7BFF}, 65504},
         {"fcvt.h.w f, x", {0xFFFFFFFF}, minus_one},
         {"fcvt.h.wu f, x", {65520}, infinite, overflow | inexact},
         {"fcvt.h.lu f, x, rtz", {ones}, 0x7BFF, overflow | inexact}});
}

TEST_CASE("RISC-V: classes, signs, and conversions between formats") {
  const std::uint16_t by_class[] = {0xFC00, minus_one, 0x8001,   0x8000,     0x0000,
                                    0x0001, one,       infinite, signalling, quiet};
  std::uint64_t bit = 1;
  for (const std::uint16_t code : by_class) {
    check({{"fclass.h x, f", {code}, bit}});
    bit <<= 1;
  }
  check({{"fsgnj.h f, f, f", {signalling, minus_one}, 0xFC01},
         {"fsgnjn.h f, f, f", {one, minus_one}, one},
         {"fsgnjx.h f, f, f", {minus_one, minus_one}, one},
         {"fcvt.s.h f, f", {signalling}, 0x7FC00000, invalid},
         {"fcvt.d.h f, f", {0x0001}, 0x3E70000000000000},
         {"fcvt.h.s f, f, rup", {0x00000001}, 0x0001, underflow | inexact},
         {"fcvt.h.d f, f", {0xFFF8000000000001}, canonical}});
}

TEST_CASE("RISC-V: registers box halves, and what boxes none counts as the canonical NaN") {
  constexpr std::uint64_t box = 0xFFFFFFFFFFFF0000;
  check({{"fadd.h f, f, f, whole register", {one, one}, box | two},
         {"fcvt.h.w f, x, whole register", {1}, box | one},
         {"flh f, m, whole register", {signalling}, box | signalling},
         {"fadd.h f, unboxed, f", {one, one}, canonical},
         {"fadd.h f, f, unboxed", {signalling, one}, canonical, invalid},
         {"fmin.h f, unboxed, f", {one, two}, two},
         {"fsgnj.h f, unboxed, f", {one, minus_one}, 0xFE00},
         {"fsgnj.h f, f, unboxed", {minus_one, minus_one}, one},
         {"flt.h x, unboxed, f", {one, two}, 0, invalid},
         {"fclass.h x, unboxed", {one}, 1 << 9},
         {"fcvt.w.h x, unboxed", {one}, 0x7FFFFFFF, invalid},
         {"fmv.x.h x, f", {0x8000}, 0xFFFFFFFFFFFF8000},
         {"fmv.x.h x, unboxed", {one}, one},
         {"fsh unboxed, m", {signalling}, signalling}});
}
