#include <doctest/doctest.h>

#include "tests/emulator/run_ptx.h"

using doctest::Contains;
using emulator::testing::OnDevice;
using emulator::testing::run;
using emulator::testing::run_lanes;

namespace {

/// `body` finds the address of global memory in `a`, its thread's number in t.
void run_on(const OnDevice<std::uint32_t>& memory, std::string_view body, std::uint32_t threads = 1,
            std::string_view outside = "") {
  run(std::string(outside) + R"(
    .visible .entry k(.param .u64 memory) {
      .reg .b64 a, b, w<8>; .reg .b32 t, r<16>; .reg .b16 h<8>; .reg .pred p<4>;
      ld.param.u64 a, [memory];
      mov.u32 t, %tid.x;
  )" + std::string(body) +
          " ret; }",
      {.threads = threads}, {memory.address()});
}

}  // namespace

TEST_CASE("loads extend, stores truncate, vectors go side by side") {
  const OnDevice<std::uint32_t> memory({0x8081'8283, 2, 3, 4, 5, 6, 7, 8});
  run_on(memory, R"(
    ld.global.s8 r0, [a];
    ld.global.u8 r1, [a+3];
    ld.global.v2.u16 {h0, h1}, [a];
    ld.global.v4.u32 {r4, r5, r6, r7}, [a+16];
    ld.global.nc.L1::no_allocate.s16 w0, [a+2];
    st.global.u32 [a], r0;
    st.global.u8 [a+4], r1;
    st.global.v2.b16 [a+8], {h1, h0};
    st.global.v4.u32 [a+16], {r7, r6, r5, r4};
    st.global.u32 [a+12], w0;
  )");
  CHECK(memory.values() == std::vector<std::uint32_t>{0xffffff83, 0x80, 0x8283'8081, 0xffff8081, 8, 7, 6, 5});
}

TEST_CASE("generic addresses of shared and local memory") {
  const OnDevice<std::uint32_t> memory(64);
  run_on(memory, R"(
    .shared .align 8 .b8 tile[256];
    .local .align 8 .b8 own[16];
    mov.u64 b, tile;
    cvta.shared.u64 b, b;
    mul.wide.u32 w0, t, 4;
    add.u64 b, b, w0;
    st.u32 [b], t;
    mov.u64 w1, own;
    cvta.local.u64 w2, w1;
    st.u32 [w2+4], t;
    ld.local.u32 r0, [w1+4];
    cvta.to.shared.u64 w3, b;
    ld.shared.u32 r1, [w3];
    mad.lo.u32 r1, r1, 100, r0;
    add.u64 a, a, w0;
    st.global.u32 [a], r1;
  )",
         64);
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(memory.values()[t] == 101 * t);
}

TEST_CASE("variables of the module have their initial values") {
  const OnDevice<std::uint32_t> memory(4);
  run_on(memory, R"(
    ld.const.u32 r0, [table+4];
    ld.global.u32 r1, [count];
    add.u32 r1, r1, 1;
    st.global.u32 [count], r1;
    ld.global.u64 b, [pointer];
    ld.u32 r2, [b+8];
    st.global.v4.u32 [a], {r0, r1, r2, 0};
  )",
         1, R"(
    .const .align 4 .u32 table[3] = {11, 0x16, 33};
    .global .align 4 .u32 count = 5;
    .global .align 8 .u64 pointer[1] = {generic(table)};
  )");
  CHECK(memory.values() == std::vector<std::uint32_t>{22, 6, 33, 0});
}

TEST_CASE("dynamic shared memory lies behind the static") {
  const OnDevice<std::uint32_t> memory(2);
  run(R"(
    .extern .shared .align 16 .b8 dynamic[];
    .visible .entry k(.param .u64 memory) {
      .reg .b64 a; .reg .b32 r<4>;
      .shared .align 4 .b8 fixed[20];
      ld.param.u64 a, [memory];
      mov.u32 r0, dynamic;
      mov.u32 r1, %dynamic_smem_size;
      st.shared.u32 [r0+60], r1;
      st.global.v2.u32 [a], {r0, r1};
      ret;
    })",
      {.threads = 1, .dynamic_shared_bytes = 64}, {memory.address()});
  CHECK(memory.values() == std::vector<std::uint32_t>{32, 64});
}

TEST_CASE("atomics of a warp follow one another") {
  const OnDevice<std::uint32_t> memory({100, 0xffffffff, 0, 7, 0, 0, 0x3c00, 0});
  run_on(memory, R"(
    atom.global.add.u32 r0, [a], t;
    atom.global.min.u32 r1, [a+4], t;
    red.global.max.s32 [a+8], t;
    atom.global.cas.b32 r2, [a+12], 7, t;
    red.relaxed.gpu.global.add.u64 [a+16], 1;
    mov.u32 r3, 0x3c003c00;
    atom.global.add.noftz.f16x2 r4, [a+24], r3;
    atom.global.inc.u32 r5, [a+28], 9;
  )",
         32);
  const auto values = memory.values();
  CHECK(values[0] == 100 + 496);
  CHECK(values[1] == 0);
  CHECK(values[2] == 31);
  CHECK(values[3] == 0);
  CHECK(values[4] == 32);
  CHECK(values[6] == 0x5000'5020);  // 32 and 33
  CHECK(values[7] == 2);            // 32 mod 10
}

TEST_CASE("what lies outside memory is told") {
  const OnDevice<std::uint32_t> memory(8);
  CHECK_THROWS_WITH(run_on(memory, "ld.global.u32 r0, [a+32];"), Contains("is in no live allocation"));
  CHECK_THROWS_WITH(run_on(memory, "ld.global.v2.u32 {r0, r1}, [a+28];"),
                    Contains("reaches beyond the end of an allocation of 32 bytes"));
  CHECK_THROWS_WITH(run_on(memory, "st.global.u32 [a+2], t;"), Contains("is not a multiple of 4"));
  CHECK_THROWS_WITH(run_on(memory, "ld.global.u32 r0, [0];"), Contains("global address 0x0, 4 bytes"));
  CHECK_THROWS_WITH(run_on(memory, ".shared .b32 one; mov.u32 r0, one; st.shared.u32 [r0+4], t;"),
                    Contains("is outside the block's 4 bytes"));
  CHECK_THROWS_WITH(run_on(memory, ".local .align 4 .b8 own[4]; mov.u64 b, own; st.local.u32 [b+16], t;"),
                    Contains("is outside the thread's 16 bytes"));
  CHECK_THROWS_WITH(run_on(memory, "st.const.u32 [table], t;", 1, ".const .u32 table;"),
                    Contains("a constant"));
  std::uint64_t freed = 0;
  {
    const OnDevice<std::uint32_t> gone(4);
    freed = gone.address();
  }
  CHECK_THROWS_WITH(run_on(memory, "mov.u64 b, " + std::to_string(freed) + "; ld.global.u32 r0, [b];"),
                    Contains("is in freed memory"));
}

TEST_CASE("fresh memory holds poison") {
  const OnDevice<std::uint32_t> memory(1);
  run_on(memory, ".shared .b32 one; ld.shared.u32 r0, [one]; add.u32 r0, r0, 1; st.global.u32 [a], r0;");
  CHECK(memory.values()[0] == 0xfdfdfdfe);
}

TEST_CASE("races on shared memory are told") {
  constexpr std::string_view cell = ".shared .b32 cell; ";
  const auto body = [&](std::string_view text) { return std::string(cell) + std::string(text); };
  CHECK_THROWS_WITH(run_lanes(body("st.shared.u32 [cell], lane;"), 64), Contains("race on byte 0"));
  CHECK_THROWS_WITH(run_lanes(body("setp.eq.u32 p0, lane, 0; @p0 st.shared.u32 [cell], lane;"
                                   "ld.shared.u32 result, [cell];"),
                              64),
                    Contains("warp 1 and a write of warp 0 without a barrier"));
  CHECK_THROWS_WITH(run_lanes(body("ld.shared.u32 result, [cell]; setp.eq.u32 p0, lane, 40;"
                                   "@p0 st.shared.u32 [cell], lane;"),
                              64),
                    Contains("warp 1 and reads of other warps without a barrier"));
  CHECK_NOTHROW(run_lanes(body("setp.eq.u32 p0, lane, 0; @p0 st.shared.u32 [cell], lane; bar.sync 0;"
                               "ld.shared.u32 result, [cell];"),
                          64));
  CHECK_NOTHROW(run_lanes(body("red.shared.add.u32 [cell], lane;"), 64));
  CHECK_NOTHROW(run_lanes(body("st.shared.u32 [cell], lane;"), 32));
}
