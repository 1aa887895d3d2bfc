#include <doctest/doctest.h>

#include <bit>

#include "tests/emulator/run_ptx.h"

using doctest::Contains;
using emulator::testing::run_lanes;

TEST_CASE("shuffles read from the lane that PTX says") {
  const auto down =
      run_lanes("shfl.sync.down.b32 result|p0, lane, 3, 31, -1; @!p0 add.u32 result, result, 100;");
  const auto up = run_lanes("shfl.sync.up.b32 result|p0, lane, 3, 0, -1; @!p0 add.u32 result, result, 100;");
  const auto butterfly = run_lanes("shfl.sync.bfly.b32 result, lane, 5, 31, -1;");
  const auto index = run_lanes("shfl.sync.idx.b32 result, lane, 7, 31, -1;");
  // Segments of 8 lanes: c = (32 - 8) << 8 | 31.
  const auto segments = run_lanes("shfl.sync.down.b32 result, lane, 3, 0x181f, -1;");
  const auto first_of_segment = run_lanes("shfl.sync.idx.b32 result, lane, 0, 0x181f, -1;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(down[lane] == (lane < 29 ? lane + 3 : lane + 100));
    CHECK(up[lane] == (lane >= 3 ? lane - 3 : lane + 100));
    CHECK(butterfly[lane] == (lane ^ 5));
    CHECK(index[lane] == 7);
    CHECK(segments[lane] == (lane % 8 < 5 ? lane + 3 : lane));
    CHECK(first_of_segment[lane] == lane / 8 * 8);
  }
}

TEST_CASE("lanes that part are brought together by their mask") {
  // Even lanes come to the shuffle by another way.
  const auto result = run_lanes(R"(
    and.b32 r0, lane, 1;
    setp.eq.u32 p0, r0, 0;
    @p0 bra even;
    mov.u32 r1, 1;
    bra together;
    even: mov.u32 r1, 2;
    together: shfl.sync.bfly.b32 result, r1, 1, 31, 0xffffffff;
  )");
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(result[lane] == (lane % 2 == 0 ? 1 : 2));
  // Two groups that shuffle by themselves.
  const auto groups = run_lanes(R"(
    setp.lt.u32 p0, lane, 16;
    @p0 bra low;
    shfl.sync.idx.b32 result, lane, 20, 31, 0xffff0000;
    bra done;
    low: shfl.sync.idx.b32 result, lane, 4, 31, 0x0000ffff;
    done:
  )");
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(groups[lane] == (lane < 16 ? 4 : 20));
}

TEST_CASE("shuffles among the wrong lanes are told") {
  CHECK_THROWS_WITH(run_lanes("shfl.sync.idx.b32 result, lane, 20, 31, 0x0000ffff;"),
                    Contains("lane 16 is not among the members"));
  CHECK_THROWS_WITH(
      run_lanes("setp.lt.u32 p0, lane, 16; @p0 shfl.sync.idx.b32 result, lane, 20, 31, 0x0000ffff;"),
      Contains("lane 0 reads from lane 20, which does not take part"));
}

TEST_CASE("votes, matches and reductions") {
  const auto ballot = run_lanes("setp.lt.u32 p0, lane, 9; vote.sync.ballot.b32 result, p0, -1;");
  const auto all =
      run_lanes("setp.lt.u32 p0, lane, 9; vote.sync.all.pred p1, p0, -1; selp.u32 result, 1, 0, p1;");
  const auto any =
      run_lanes("setp.lt.u32 p0, lane, 9; vote.sync.any.pred p1, p0, -1; selp.u32 result, 1, 0, p1;");
  const auto same = run_lanes("shr.u32 r0, lane, 3; match.any.sync.b32 result, r0, -1;");
  const auto not_all = run_lanes("shr.u32 r0, lane, 3; match.all.sync.b32 result|p0, r0, -1;");
  const auto sum = run_lanes("redux.sync.add.u32 result, lane, -1;");
  const auto least = run_lanes("sub.s32 r0, 3, lane; redux.sync.min.s32 result, r0, -1;");
  const auto bits = run_lanes("redux.sync.xor.b32 result, lane, -1;");
  const auto elected = run_lanes("elect.sync _|p0, 0xffffffff; selp.u32 result, 1, 0, p0;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(ballot[lane] == 0x1ff);
    CHECK(all[lane] == 0);
    CHECK(any[lane] == 1);
    CHECK(same[lane] == 0xffu << lane / 8 * 8);
    CHECK(not_all[lane] == 0);
    CHECK(sum[lane] == 496);
    CHECK(least[lane] == 0xffffffff - 27);
    CHECK(bits[lane] == 0);
    CHECK(elected[lane] == (lane == 0 ? 1 : 0));
  }
}

TEST_CASE("special registers") {
  CHECK(run_lanes("mov.u32 result, %laneid;", 40)[35] == 3);
  CHECK(run_lanes("mov.u32 result, %warpid;", 40)[35] == 1);
  CHECK(run_lanes("mov.u32 result, %ntid.x;", 40)[0] == 40);
  CHECK(run_lanes("mov.u32 result, %nctaid.y;")[0] == 1);
  CHECK(run_lanes("mov.u32 result, %lanemask_le;")[31] == 0xffffffff);
  CHECK(run_lanes("mov.u32 result, %lanemask_lt;")[4] == 0xf);
  CHECK(run_lanes("mov.u32 result, %lanemask_gt;")[31] == 0);
  CHECK(run_lanes("mov.u32 result, %lanemask_ge;")[30] == 0xc0000000);
  CHECK(run_lanes("mov.u32 result, WARP_SZ;")[0] == 32);
}
