#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

#include "tests/emulator/run_ptx.h"

using emulator::testing::half;
using emulator::testing::numbered;
using emulator::testing::OnDevice;
using emulator::testing::run;
using emulator::testing::run_lanes;
using emulator::testing::word;

namespace {

std::uint32_t binary32(int value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

/// Every element is of its own value.
int a_element(int row, int k) {
  return 1 + row * 16 + k;
}
int b_element(int k, int column) {
  return 300 + k * 8 + column;
}
int c_element(int row, int column) {
  return -1000 - row * 8 - column;
}
int d_element(int row, int column, int depth) {
  int sum = c_element(row, column);
  for (int k = 0; k < depth; ++k) sum += a_element(row, k) * b_element(k, column);
  return sum;
}

// The figures of PTX ISA, "Matrix Fragments for mma.m16n8k8" and "mma.m16n8k16": rows and columns of ai, bi, ci.
struct Place {
  int row;
  int column;
};
Place a_place(int lane, int i) {
  return {lane / 4 + ((i < 2 || (4 <= i && i < 6)) ? 0 : 8), lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
}
Place b_place(int lane, int i) {
  return {lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8), lane / 4};
}
Place c_place(int lane, int i) {
  return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}

/// The words that 32 lanes have in registers r0, r1, ..., lane after lane.
using Words = std::vector<std::uint32_t>;

/// Runs `instruction` on registers of which each lane loads the first `in` and stores the first `out`.
Words run_registers(const std::string& instruction, int in, int out, const Words& words) {
  const OnDevice<std::uint32_t> from(words), to(static_cast<std::size_t>(32 * out));
  std::string text = R"(.visible .entry k(.param .u64 from, .param .u64 to) {
    .reg .b32 r<32>, t; .reg .b64 a, b, o;
    ld.param.u64 a, [from]; ld.param.u64 b, [to]; mov.u32 t, %tid.x;
  )";
  text += "mul.wide.u32 o, t, " + std::to_string(4 * in) + "; add.u64 a, a, o;\n";
  text += "mul.wide.u32 o, t, " + std::to_string(4 * out) + "; add.u64 b, b, o;\n";
  for (int i = 0; i < in; ++i) text += "ld.global.u32 " + numbered("r", i) + ", " + word("a", i) + ";\n";
  text += instruction;
  for (int i = 0; i < out; ++i) text += "st.global.u32 " + word("b", i) + ", " + numbered("r", i) + ";\n";
  run(text + "ret; }", {.threads = 32}, {from.address(), to.address()});
  return to.values();
}

void push_pair(Words& words, std::uint16_t low, std::uint16_t high) {
  words.push_back(low | static_cast<std::uint32_t>(high) << 16);
}

/// a and b of a lane as the instruction has them, with c's registers before them.
void push_operands(Words& words, int lane, int depth) {
  for (int i = 0; i < depth / 2; i += 2) {
    const Place low = a_place(lane, i), high = a_place(lane, i + 1);
    push_pair(words, half(a_element(low.row, low.column)), half(a_element(high.row, high.column)));
  }
  for (int i = 0; i < depth / 4; i += 2) {
    const Place low = b_place(lane, i), high = b_place(lane, i + 1);
    push_pair(words, half(b_element(low.row, low.column)), half(b_element(high.row, high.column)));
  }
}

void check_binary32(const std::string& instruction, int depth) {
  Words words;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i)
      words.push_back(binary32(c_element(c_place(lane, i).row, c_place(lane, i).column)));
    push_operands(words, lane, depth);
  }
  const Words d = run_registers(instruction, 4 + depth / 4 + depth / 8, 4, words);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Place place = c_place(lane, i);
      CHECK(d[static_cast<std::size_t>(4 * lane + i)] == binary32(d_element(place.row, place.column, depth)));
    }
  }
}

/// Only k = (5 row + 3) mod depth of a row is not 0, so that binary16 holds all sums.
void check_binary16(const std::string& instruction, int depth) {
  const auto a = [&](int row, int k) { return k == (5 * row + 3) % depth ? 1 + row % 8 : 0; };
  const auto b = [](int k, int column) { return k * 8 + column; };
  const auto c = [](int row, int column) { return row * 8 + column; };
  Words words;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; i += 2) {
      const Place low = c_place(lane, i), high = c_place(lane, i + 1);
      push_pair(words, half(c(low.row, low.column)), half(c(high.row, high.column)));
    }
    for (int i = 0; i < depth / 2; i += 2) {
      const Place low = a_place(lane, i), high = a_place(lane, i + 1);
      push_pair(words, half(a(low.row, low.column)), half(a(high.row, high.column)));
    }
    for (int i = 0; i < depth / 4; i += 2) {
      const Place low = b_place(lane, i), high = b_place(lane, i + 1);
      push_pair(words, half(b(low.row, low.column)), half(b(high.row, high.column)));
    }
  }
  const Words d = run_registers(instruction, 2 + depth / 4 + depth / 8, 2, words);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Place place = c_place(lane, i);
      const int k = (5 * place.row + 3) % depth;
      const std::uint32_t codes = d[static_cast<std::size_t>(2 * lane + i / 2)];
      CHECK((codes >> 16 * (i % 2) & 0xffff) ==
            half(a(place.row, k) * b(k, place.column) + c(place.row, place.column)));
    }
  }
}

}  // namespace

TEST_CASE("fragments of mma lie as PTX says") {
  check_binary32(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{r0,r1,r2,r3}, {r4,r5,r6,r7}, {r8,r9}, {r0,r1,r2,r3};",
      16);
  check_binary32(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {r0,r1,r2,r3}, {r4,r5}, {r6}, {r0,r1,r2,r3};", 8);
  check_binary16(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {r0,r1}, {r2,r3,r4,r5}, {r6,r7}, {r0,r1};", 16);
  check_binary16("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {r0,r1}, {r2,r3}, {r4}, {r0,r1};", 8);
}

TEST_CASE("mma reads all of c before it writes d to the same registers in another order") {
  const std::string swap = "mov.b32 t, r0; mov.b32 r0, r1; mov.b32 r1, t;";
  check_binary32(
      swap + "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {r0,r1,r2,r3}, {r4,r5}, {r6}, {r1,r0,r2,r3};",
      8);
  check_binary16(swap + "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {r0,r1}, {r2,r3}, {r4}, {r1,r0};",
                 8);
}

TEST_CASE("ldmatrix makes the operands of mma out of tiles by rows") {
  // Shared memory holds a, 16 x 16, and behind it b, 16 x 8.
  Words tiles;
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; k += 2) push_pair(tiles, half(a_element(row, k)), half(a_element(row, k + 1)));
  }
  for (int k = 0; k < 16; ++k) {
    for (int column = 0; column < 8; column += 2)
      push_pair(tiles, half(b_element(k, column)), half(b_element(k, column + 1)));
  }
  const OnDevice<std::uint32_t> from(tiles), to(128);
  run(R"(.visible .entry k(.param .u64 from, .param .u64 to) {
    .reg .b32 r<32>, t, s, x; .reg .b64 a, b, o; .reg .pred p;
    .shared .align 16 .b8 tile[768];
    ld.param.u64 a, [from]; ld.param.u64 b, [to]; mov.u32 t, %tid.x;
    mov.u32 x, t;
    fill: mul.wide.u32 o, x, 4; add.u64 o, o, a; ld.global.u32 r0, [o];
    mov.u32 s, tile; mad.lo.u32 s, x, 4, s; st.shared.u32 [s], r0;
    add.u32 x, x, 32; setp.lt.u32 p, x, 192; @p bra fill;
    bar.sync 0;
    // a: lanes 0-15 give the rows of the left half, 16-31 of the right one.
    mov.u32 s, tile; and.b32 x, t, 15; mad.lo.u32 s, x, 32, s; shr.u32 x, t, 4; mad.lo.u32 s, x, 16, s;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r4, r5, r6, r7}, [s];
    mov.u32 s, tile; and.b32 x, t, 15; mad.lo.u32 s, x, 16, s;
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {r8, r9}, [s+512];
    mov.b32 r0, 0f00000000; mov.b32 r1, r0; mov.b32 r2, r0; mov.b32 r3, r0;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r0,r1,r2,r3}, {r4,r5,r6,r7}, {r8,r9}, {r0,r1,r2,r3};
    mul.wide.u32 o, t, 16; add.u64 b, b, o; st.global.v4.u32 [b], {r0, r1, r2, r3};
    ret; })",
      {.threads = 32}, {from.address(), to.address()});
  const auto d = to.values();
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Place place = c_place(lane, i);
      CHECK(d[static_cast<std::size_t>(4 * lane + i)] ==
            binary32(d_element(place.row, place.column, 16) - c_element(place.row, place.column)));
    }
  }
}

TEST_CASE("stmatrix stores what ldmatrix loads, movmatrix transposes") {
  constexpr std::string_view start = R"(
    .shared .align 16 .b8 tile[128];
    .shared .align 16 .b8 other[128];
    mov.u32 r0, tile; mad.lo.u32 r1, lane, 4, r0; st.shared.u32 [r1], lane; bar.sync 0;
    and.b32 r2, lane, 7; mad.lo.u32 r1, r2, 16, r0;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r3}, [r1];
  )";
  const auto plain = run_lanes(std::string(start) + "mov.u32 result, r3;");
  const auto stored = run_lanes(std::string(start) + R"(
    mov.u32 r4, other; mad.lo.u32 r5, r2, 16, r4;
    stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [r5], {r3};
    bar.sync 0;
    mad.lo.u32 r5, lane, 4, r4; ld.shared.u32 result, [r5];
  )");
  const auto moved = run_lanes(std::string(start) + "movmatrix.sync.aligned.m8n8.trans.b16 result, r3;");
  // Element (row, column) of the tile is lane row * 4 + column / 2 if the column is even, and 0.
  const auto element = [](std::uint32_t row, std::uint32_t column) {
    return column % 2 == 0 ? row * 4 + column / 2 : 0;
  };
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t row = lane / 4, column = lane % 4 * 2;
    CHECK(plain[lane] == lane);
    CHECK(stored[lane] == (element(column, row) | element(column + 1, row) << 16));
    CHECK(moved[lane] == (element(column, row) | element(column + 1, row) << 16));
  }
}

TEST_CASE("wmma multiplies matrices in memory") {
  std::vector<std::uint16_t> a(16 * 24), b(16 * 16), c(16 * 16);
  std::vector<std::uint32_t> sums(16 * 16);
  const auto a_of = [](int row, int k) { return (row * 7 + k * 3) % 11 - 5; };
  const auto b_of = [](int k, int column) { return (k * 5 + column * 2) % 13 - 6; };
  const auto c_of = [](int row, int column) { return row * 16 + column; };
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      a[static_cast<std::size_t>(i * 24 + j)] = half(a_of(i, j));
      b[static_cast<std::size_t>(j * 16 + i)] = half(b_of(i, j));  // by columns
      c[static_cast<std::size_t>(i * 16 + j)] = half(c_of(i, j));
      sums[static_cast<std::size_t>(i * 16 + j)] = binary32(c_of(i, j));
    }
  }
  const OnDevice<std::uint16_t> a_memory(a), b_memory(b), c_memory(c);
  const OnDevice<std::uint32_t> sum_memory(sums);
  run(R"(.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 sums) {
    .reg .b32 a<8>, b<8>, c<8>, s<8>; .reg .b64 w<4>; .reg .b32 lead;
    ld.param.u64 w0, [a]; ld.param.u64 w1, [b]; ld.param.u64 w2, [c]; ld.param.u64 w3, [sums];
    mov.u32 lead, 24;
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {a0,a1,a2,a3,a4,a5,a6,a7}, [w0], lead;
    wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {b0,b1,b2,b3,b4,b5,b6,b7}, [w1];
    wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {s0,s1,s2,s3,s4,s5,s6,s7}, [w3], 16;
    wmma.load.c.sync.aligned.row.m16n16k16.f16 {c0,c1,c2,c3}, [w2], 16;
    wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32
      {s0,s1,s2,s3,s4,s5,s6,s7}, {a0,a1,a2,a3,a4,a5,a6,a7}, {b0,b1,b2,b3,b4,b5,b6,b7}, {s0,s1,s2,s3,s4,s5,s6,s7};
    wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16
      {c0,c1,c2,c3}, {a0,a1,a2,a3,a4,a5,a6,a7}, {b0,b1,b2,b3,b4,b5,b6,b7}, {c0,c1,c2,c3};
    wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [w3], {s0,s1,s2,s3,s4,s5,s6,s7}, 16;
    wmma.store.d.sync.aligned.col.m16n16k16.f16 [w2], {c0,c1,c2,c3}, 16;
    ret; })",
      {.threads = 32}, {a_memory.address(), b_memory.address(), c_memory.address(), sum_memory.address()});
  const auto d32 = sum_memory.values();
  const auto d16 = c_memory.values();
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      int sum = c_of(i, j);
      for (int k = 0; k < 16; ++k) sum += a_of(i, k) * b_of(k, j);
      CHECK(d32[static_cast<std::size_t>(i * 16 + j)] == binary32(sum));
      CHECK(d16[static_cast<std::size_t>(j * 16 + i)] == half(sum));  // stored by columns
    }
  }
}

TEST_CASE("a warp that is not whole cannot multiply") {
  CHECK_THROWS_WITH(
      run_lanes("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {r0,r1}, {r2,r3}, {r4}, {r0,r1};", 16),
      doctest::Contains("by a part of one"));
}
