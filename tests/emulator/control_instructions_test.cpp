#include <doctest/doctest.h>

#include "tests/emulator/run_ptx.h"

using doctest::Contains;
using emulator::testing::OnDevice;
using emulator::testing::run;
using emulator::testing::run_lanes;

TEST_CASE("lanes that part meet again") {
  // Odd lanes take a detour; behind it all vote together.
  const auto result = run_lanes(R"(
    and.b32 r0, lane, 1;
    setp.eq.u32 p0, r0, 0;
    mov.u32 r1, 100;
    @p0 bra even;
    add.u32 r1, r1, lane;
    even:
    activemask.b32 r2;
    add.u32 result, r1, r2;
  )");
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(result[lane] == 99 + (lane % 2 == 1 ? lane : 0));
}

TEST_CASE("each lane leaves a loop in its own round") {
  const auto result = run_lanes(R"(
    mov.u32 r0, 0;
    loop:
    add.u32 result, result, 3;
    add.u32 r0, r0, 1;
    setp.le.u32 p0, r0, lane;
    @p0 bra loop;
  )");
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(result[lane] == 3 * (lane + 1));
}

TEST_CASE("a table of targets") {
  const auto result = run_lanes(R"(
    and.b32 r0, lane, 3;
    targets: .branchtargets zero, one, two, one;
    brx.idx r0, targets;
    zero: mov.u32 result, 10; bra.uni done;
    one: mov.u32 result, 11; bra.uni done;
    two: mov.u32 result, 12;
    done:
  )");
  constexpr std::uint32_t expected[] = {10, 11, 12, 11};
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(result[lane] == expected[lane % 4]);
}

TEST_CASE("calls return to where they came from, also from a part of the lanes") {
  constexpr std::string_view functions = R"(
    .func (.param .b32 sum) add_three(.param .b32 a, .param .b32 b, .param .align 8 .b8 c[8]) {
      .reg .b32 x, y, z;
      ld.param.u32 x, [a];
      ld.param.u32 y, [b];
      ld.param.u32 z, [c+4];
      add.u32 x, x, y;
      add.u32 x, x, z;
      st.param.b32 [sum+0], x;
      ret;
    }
  )";
  const auto result = run_lanes(R"(
    setp.lt.u32 p0, lane, 5;
    @p0 bra skip;
    {
      .param .b32 a0; st.param.b32 [a0+0], lane;
      .param .b32 a1; st.param.b32 [a1+0], 1000;
      .param .align 8 .b8 a2[8]; st.param.b32 [a2+4], 7;
      .param .b32 back;
      call.uni (back), add_three, (a0, a1, a2);
      ld.param.b32 result, [back+0];
    }
    skip:
  )",
                                32, functions);
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(result[lane] == (lane < 5 ? 0 : lane + 1007));
}

TEST_CASE("threads that exit are not waited for") {
  const auto result = run_lanes(R"(
    .shared .align 4 .u32 cell;
    mov.u32 result, 1;
    setp.eq.u32 p0, lane, 70;
    @p0 st.shared.u32 [cell], 9;
    bar.sync 0;
    ld.shared.u32 result, [cell];
  )",
                                96);
  for (const std::uint32_t value : result) CHECK(value == 9);
  const OnDevice<std::uint32_t> out(64);
  run(R"(.visible .entry k(.param .u64 out) {
    .reg .b32 t; .reg .b64 a, o; .reg .pred p;
    mov.u32 t, %tid.x;
    setp.ge.u32 p, t, 40;
    @p exit;
    bar.sync 0;
    ld.param.u64 a, [out]; mul.wide.u32 o, t, 4; add.u64 a, a, o; st.global.u32 [a], t;
    ret; })",
      {.threads = 64}, {out.address()});
  CHECK(out.values()[39] == 39);
  CHECK(out.values()[40] == 0xfdfdfdfd);
}

TEST_CASE("barriers by number and with counts") {
  // Warp 0 produces, warp 1 consumes, warp 2 has no part in it.
  const auto result = run_lanes(R"(
    .shared .align 4 .b8 cells[128];
    mov.u32 r1, cells;
    and.b32 r0, lane, 31;
    shl.b32 r0, r0, 2;
    add.u32 r1, r1, r0;
    setp.lt.u32 p0, lane, 32;
    setp.ge.u32 p1, lane, 64;
    @p1 bra done;
    @p0 bra produce;
    barrier.sync 3, 64;
    ld.shared.u32 result, [r1];
    bra done;
    produce:
    mul.lo.u32 r2, lane, 5;
    st.shared.u32 [r1], r2;
    barrier.arrive 3, 64;
    done:
  )",
                                96);
  for (std::uint32_t lane = 32; lane < 64; ++lane) CHECK(result[lane] == 5 * (lane - 32));
}

TEST_CASE("barriers that reduce") {
  const auto result = run_lanes(R"(
    setp.lt.u32 p0, lane, 50;
    bar.red.popc.u32 r0, 0, p0;
    bar.red.and.pred p1, 0, p0;
    bar.red.or.pred p2, 0, p0;
    bar.red.and.pred p3, 0, !p3;
    selp.u32 r1, 1000, 0, p1;
    selp.u32 r2, 100, 0, p2;
    add.u32 result, r0, r1;
    add.u32 result, result, r2;
  )",
                                64);
  for (const std::uint32_t value : result) CHECK(value == 150);
}

TEST_CASE("barriers that cannot be passed are told") {
  CHECK_THROWS_WITH(run_lanes("setp.lt.u32 p0, lane, 5; @p0 bra skip; bar.sync 0; skip: bar.sync 0;"),
                    Contains("lanes of a warp wait for barrier 0 in different instructions"));
  CHECK_THROWS_WITH(run_lanes("setp.lt.u32 p0, lane, 32; @p0 bar.sync 1, 64;", 64),
                    Contains("wait for others that never come"));
  CHECK_THROWS_WITH(run_lanes("trap;"), Contains("kernel k, block (0, 0, 0), warp 0, \"trap\": trap"));
  CHECK_THROWS_WITH(run_lanes("setp.lt.u32 p0, lane, 5; @p0 vote.sync.all.pred p1, p0, -1;"),
                    Contains("wait for others that never come"));
}

TEST_CASE("a thread may wait for what another stores") {
  const auto result = run_lanes(R"(
    .shared .align 4 .u32 flag;
    setp.eq.u32 p0, lane, 0;
    @p0 st.shared.u32 [flag], 0;
    bar.sync 0;
    setp.eq.u32 p1, lane, 40;
    @p1 bra set;
    wait:
    ld.volatile.shared.u32 result, [flag];
    setp.eq.u32 p2, result, 0;
    @p2 bra wait;
    bra done;
    set:
    st.volatile.shared.u32 [flag], 8;
    mov.u32 result, 8;
    done:
  )",
                                64);
  for (const std::uint32_t value : result) CHECK(value == 8);
}
