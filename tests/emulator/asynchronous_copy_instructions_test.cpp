#include <doctest/doctest.h>

#include "tests/emulator/run_ptx.h"

using doctest::Contains;
using emulator::testing::run_lanes;

namespace {

constexpr std::string_view source = ".global .align 16 .u32 source[8] = {10, 11, 12, 13, 14, 15, 16, 17};";

/// Lane 0 copies from `source` to `tile`; every lane reads word `lane` of the tile at the end.
std::vector<std::uint32_t> after(const std::string& body) {
  return run_lanes(R"(
    .shared .align 16 .b8 tile[128];
    mov.u32 r0, tile; mov.u64 w0, source; mov.u32 r2, 4;
    mad.lo.u32 r1, lane, 4, r0; st.shared.u32 [r1], 1;
    setp.eq.u32 p0, lane, 0; setp.ne.u32 p1, lane, 0;
  )" + body + "ld.shared.u32 result, [r1];",
                   32, source);
}

constexpr std::uint32_t poison = 0xfdfdfdfd;

}  // namespace

TEST_CASE("a copy is there after the wait, and not before") {
  const std::string copy = "@p0 cp.async.cg.shared.global [r0], [w0+16], 16; cp.async.commit_group;";
  const auto early = after(copy);
  const auto waited = after(copy + "cp.async.wait_group 0;");
  for (std::uint32_t i = 0; i < 4; ++i) {
    CHECK(early[i] == poison);
    CHECK(waited[i] == 14 + i);
  }
  CHECK(early[4] == 1);
  CHECK(waited[4] == 1);
}

TEST_CASE("waits cover the groups that they name") {
  const std::string copies = R"(
    @p0 cp.async.ca.shared.global [r0], [w0], 4; cp.async.commit_group;
    @p0 cp.async.ca.shared.global [r0+8], [w0+8], 8; cp.async.commit_group;
    @p0 cp.async.ca.shared.global.L2::128B [r0+16], [w0+16], 16;
  )";
  const auto first = after(copies + "cp.async.wait_group 1;");
  CHECK(first[0] == 10);
  CHECK(first[1] == 1);
  CHECK(first[2] == poison);
  CHECK(first[4] == poison);
  const auto both = after(copies + "cp.async.wait_group 0;");
  CHECK(both[2] == 12);
  CHECK(both[3] == 13);
  CHECK(both[4] == poison);
  CHECK(after(copies + "cp.async.wait_all;")[4] == 14);
}

TEST_CASE("bytes beyond the source's size are zeros") {
  CHECK(after("@p0 cp.async.ca.shared.global [r0], [w0], 8, r2; cp.async.wait_all;")[0] == 10);
  CHECK(after("@p0 cp.async.ca.shared.global [r0], [w0], 8, r2; cp.async.wait_all;")[1] == 0);
  CHECK(after("@p0 cp.async.cg.shared.global [r0], [w0], 16, p0; cp.async.wait_all;")[3] == 0);
  CHECK(after("@p0 cp.async.cg.shared.global [r0], [w0], 16, p1; cp.async.wait_all;")[3] == 13);
}

TEST_CASE("copies from outside and to odd places are told") {
  CHECK_THROWS_WITH(after("cp.async.cg.shared.global [r0], [w0+32], 16;"), Contains("global address"));
  CHECK_THROWS_WITH(after("cp.async.cg.shared.global [r0], [w0+8], 16;"),
                    Contains("not a multiple of its size"));
  CHECK_THROWS_WITH(after("cp.async.cg.shared.global [r0+4], [w0], 16;"),
                    Contains("is not a multiple of 16"));
}
