#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

#include "tests/emulator/run_ptx.h"

using doctest::Contains;
using emulator::testing::half;
using emulator::testing::numbered;
using emulator::testing::OnDevice;
using emulator::testing::run;
using emulator::testing::word;

namespace {

int a_element(int row, int k) {
  return (row * 13 + k * 7) % 31 - 15;
}
int b_element(int k, int column) {
  return (column * 11 + k * 5) % 29 - 14;
}
int c_element(int row, int column) {
  return row * 8 - column;
}

/// How an operand lies in shared memory. Its pattern has rows of `width` bytes (32, 64 or 128; 0: no swizzling), which
/// hold consecutive k (k-major) or consecutive rows or columns of the matrix (else).
struct Layout {
  int width = 0;
  bool k_major = true;
  int leading = 0;
  int stride = 0;

  int swizzle_code() const { return width == 128 ? 1 : width == 64 ? 2 : width == 32 ? 3 : 0; }

  /// Byte offset of the element with that index along m or n and that k, from figures 156 to 163 of the PTX ISA: the
  /// pattern's chunk c of 16 bytes in its row r is found where chunk c ^ r would be, with 64 bytes c ^ r / 2 and with
  /// 32 bytes c ^ r / 4.
  int offset(int outer, int k) const {
    if (width == 0) {
      return outer / 8 * stride + k / 8 * leading +
             (k_major ? outer % 8 * 16 + k % 8 * 2 : k % 8 * 16 + outer % 8 * 2);
    }
    const int row = k_major ? outer % 8 : k % 8;
    const int along = k_major ? k : outer % (width / 2);
    const int chunk = (along / 8) ^ (row * width / 128);
    const int pattern = k_major ? outer / 8 * stride : outer / (width / 2) * leading + k / 8 * stride;
    return pattern + row * width + chunk * 16 + along % 8 * 2;
  }
};

std::uint64_t descriptor(int start, const Layout& layout) {
  const auto encode = [](int bytes) { return static_cast<std::uint64_t>(bytes & 0x3ffff) >> 4; };
  return encode(start) | encode(layout.leading) << 16 | encode(layout.stride) << 32 |
         static_cast<std::uint64_t>(layout.swizzle_code()) << 62;
}

constexpr int image_bytes = 64 << 10, b_start = 32 << 10;

struct Product {
  int columns = 16;
  Layout a{.leading = 128, .stride = 256};
  Layout b{.leading = 128, .stride = 256};
  int first_k = 0;  ///< of what is multiplied; of k-major patterns wider than 16
  bool binary32 = true;
  bool a_in_registers = false;
  bool adds = true;
  int scale_a = 1;
  int scale_b = 1;
  std::string before_product = "wgmma.fence.sync.aligned;";
  std::string after_product = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;";
  std::string before_fence = "fence.proxy.async;";
};

int sums_of(const Product& product) {
  return product.columns / (product.binary32 ? 2 : 4);
}

std::string list_of(const char* name, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text.append(i == 0 ? "" : ", ").append(numbered(name, i));
  return text + "}";
}

std::string kernel_of(const Product& product) {
  const int sums = sums_of(product);
  std::string text = R"(
    .extern .shared .align 1024 .b8 image[];
    .visible .entry k(.param .u64 source, .param .u64 accumulators, .param .u64 fragments, .param .u64 a_code,
                      .param .u64 b_code) {
      .reg .b32 t, x, s, f<4>, d<128>; .reg .b64 from, d_place, a_place, w, a_desc, b_desc; .reg .pred p, adds;
      ld.param.u64 from, [source]; ld.param.u64 d_place, [accumulators]; ld.param.u64 a_place, [fragments];
      ld.param.u64 a_desc, [a_code]; ld.param.u64 b_desc, [b_code];
      mov.u32 t, %tid.x; mov.u32 x, t;
      fill: mul.wide.u32 w, x, 4; add.u64 w, w, from; ld.global.u32 f0, [w];
      mov.u32 s, image; mad.lo.u32 s, x, 4, s; st.shared.u32 [s], f0;
      add.u32 x, x, 128; setp.lt.u32 p, x, 16384; @p bra fill;
  )";
  text += product.before_fence + "bar.sync 0;\n";
  text += "mul.wide.u32 w, t, " + std::to_string(4 * sums) + "; add.u64 d_place, d_place, w;\n";
  for (int i = 0; i < sums; ++i)
    text += "ld.global.u32 " + numbered("d", i) + ", " + word("d_place", i) + ";\n";
  text +=
      "mul.wide.u32 w, t, 16; add.u64 a_place, a_place, w; ld.global.v4.u32 {f0, f1, f2, f3}, [a_place];\n";
  text += "setp.eq.u32 adds, " + std::to_string(product.adds ? 0 : 1) + ", 0;\n" + product.before_product;
  text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(product.columns) + "k16." +
          (product.binary32 ? "f32" : "f16") + ".f16.f16 " + list_of("d", sums) + ", " +
          (product.a_in_registers ? list_of("f", 4) : "a_desc") + ", b_desc, adds, " +
          std::to_string(product.scale_a) + ", " + std::to_string(product.scale_b) +
          (product.a_in_registers ? ""
           : product.a.k_major    ? ", 0"
                                  : ", 1") +
          (product.b.k_major ? ", 0" : ", 1") + ";\n";
  text += product.after_product;
  for (int i = 0; i < sums; ++i)
    text += "st.global.u32 " + word("d_place", i) + ", " + numbered("d", i) + ";\n";
  return text + "ret; }";
}

// PTX ISA, figures 148 and 149: of a warp's 16 rows a lane holds the fragments of mma.m16n8k16, for every 8 columns.
struct Place {
  int row;
  int column;
};
Place d_place(int thread, int i) {
  return {thread / 32 * 16 + thread % 32 / 4 + (i % 4 < 2 ? 0 : 8), i / 4 * 8 + thread % 4 * 2 + (i & 1)};
}
Place a_place(int thread, int i) {
  return {thread / 32 * 16 + thread % 32 / 4 + (i / 2 % 2 == 0 ? 0 : 8),
          thread % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
}

struct Image {
  std::vector<std::uint16_t> halves = std::vector<std::uint16_t>(image_bytes / 2, 0x7e00);
  void put(int bytes, int value) { halves[static_cast<std::size_t>(bytes / 2)] = half(value); }
};

/// The values of d at `d_place` of thread after thread.
std::vector<std::uint32_t> multiply(const Product& product) {
  Image image;
  const int depth = product.first_k + 16;
  for (int k = 0; k < depth; ++k) {
    for (int row = 0; row < 64; ++row) image.put(product.a.offset(row, k), a_element(row, k));
    for (int column = 0; column < product.columns; ++column)
      image.put(b_start + product.b.offset(column, k), b_element(k, column));
  }
  const int sums = product.columns / 2;
  std::vector<std::uint32_t> accumulators;
  std::vector<std::uint16_t> fragments, half_accumulators;
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < sums; ++i) {
      const Place place = d_place(thread, i);
      accumulators.push_back(
          std::bit_cast<std::uint32_t>(static_cast<float>(c_element(place.row, place.column))));
      half_accumulators.push_back(half(c_element(place.row, place.column)));
    }
    for (int i = 0; i < 8; ++i) {
      const Place place = a_place(thread, i);
      fragments.push_back(half(a_element(place.row, place.column)));
    }
  }
  // 16 of k further on are 32 bytes further in a row of the pattern.
  const std::uint64_t a_code = descriptor(product.first_k * 2, product.a);
  const std::uint64_t b_code = descriptor(b_start + product.first_k * 2, product.b);
  const OnDevice<std::uint16_t> source(image.halves), a_fragments(fragments), in16(half_accumulators);
  const OnDevice<std::uint32_t> in32(accumulators);
  run(kernel_of(product), {.threads = 128, .dynamic_shared_bytes = image_bytes},
      {source.address(), product.binary32 ? in32.address() : in16.address(), a_fragments.address(), a_code,
       b_code});
  if (product.binary32) return in32.values();
  const auto codes = in16.values();
  return {codes.begin(), codes.end()};
}

void check(const Product& product) {
  const std::vector<std::uint32_t> d = multiply(product);
  int wrong = 0;
  for (std::size_t at = 0; at < d.size(); ++at) {
    const Place place =
        d_place(static_cast<int>(at) / (product.columns / 2), static_cast<int>(at) % (product.columns / 2));
    int sum = product.adds ? c_element(place.row, place.column) : 0;
    for (int k = product.first_k; k < product.first_k + 16; ++k)
      sum += product.scale_a * a_element(place.row, k) * product.scale_b * b_element(k, place.column);
    wrong += d[at] != (product.binary32 ? std::bit_cast<std::uint32_t>(static_cast<float>(sum)) : half(sum));
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("operands without swizzling, along k and along m or n") {
  check({});
  check({.columns = 8});
  check({.columns = 256, .b = {.leading = 4096, .stride = 128}});
  check({.a = {.leading = 1024, .stride = 128}});
  check({.a = {.k_major = false, .leading = 1024, .stride = 128}});
  check({.b = {.k_major = false, .leading = 256, .stride = 128}});
}

TEST_CASE("swizzled operands along k") {
  for (const int width : {32, 64, 128}) {
    CAPTURE(width);
    const Layout layout{.width = width, .stride = 8 * width};
    check({.columns = 64, .a = layout, .b = layout});
    check({.columns = 24, .a = {.width = width, .stride = 16 * width}, .b = layout});
    for (int first_k = 16; first_k < width / 2; first_k += 16)
      check({.columns = 64, .a = layout, .b = layout, .first_k = first_k});
  }
}

TEST_CASE("swizzled operands along m and n") {
  for (const int width : {32, 64, 128}) {
    CAPTURE(width);
    // Two patterns of eight k, one behind the other; the next width / 2 rows behind both.
    const Layout layout{.width = width, .k_major = false, .leading = 16 * width, .stride = 8 * width};
    check({.columns = 128, .b = layout});
    check({.columns = 16, .a = layout});
    check({.columns = 64, .a = layout, .b = layout});
  }
}

TEST_CASE("a in registers, halves as sums, products that replace or subtract") {
  check({.a_in_registers = true});
  check({.columns = 32, .b = {.width = 128, .stride = 1024}, .a_in_registers = true});
  check({.binary32 = false});
  check({.columns = 64, .b = {.leading = 1024, .stride = 128}, .binary32 = false, .a_in_registers = true});
  check({.adds = false});
  check({.scale_a = -1});
  check({.scale_a = -1, .scale_b = -1});
  check({.a_in_registers = true, .scale_b = -1});
}

TEST_CASE("sums hold poison until the wait") {
  const auto d = multiply({.after_product = "wgmma.commit_group.sync.aligned;"});
  for (const std::uint32_t code : d) CHECK(code == 0xfdfdfdfd);
  CHECK(multiply({.after_product = "wgmma.wait_group.sync.aligned 0;"})[0] == 0xfdfdfdfd);
  CHECK(multiply({.after_product = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;"})[0] ==
        0xfdfdfdfd);
}

TEST_CASE("products on the same sums follow one another without a wait") {
  Product thrice;
  const std::string again =
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {d0, d1, d2, d3, d4, d5, d6, d7}, a_desc, b_desc, "
      "adds, 1, 1, "
      "0, 0;";
  thrice.after_product = again + again + thrice.after_product;
  const auto once = multiply({}), d = multiply(thrice);
  for (std::size_t at = 0; at < d.size(); ++at) {
    const Place place = d_place(static_cast<int>(at) / 8, static_cast<int>(at) % 8);
    const float c = static_cast<float>(c_element(place.row, place.column));
    CHECK(std::bit_cast<float>(d[at]) == 3 * std::bit_cast<float>(once[at]) - 2 * c);
  }
}

TEST_CASE("a pending product does not need its descriptors any more") {
  CHECK(multiply({.after_product = "mov.b64 a_desc, 0; mov.b64 b_desc, 0; wgmma.commit_group.sync.aligned;"
                                   "wgmma.wait_group.sync.aligned 0;"}) == multiply({}));
}

TEST_CASE("fences and waits that are missing are told") {
  CHECK_THROWS_WITH(multiply({.before_product = ""}), Contains("no wgmma.fence before it"));
  CHECK_THROWS_WITH(multiply({.before_product = "wgmma.fence.sync.aligned; add.f32 d0, d0, 0f3F800000;"}),
                    Contains("were written since the last wgmma.fence"));
  CHECK_THROWS_WITH(multiply({.before_fence = ""}), Contains("without a fence.proxy.async"));
  CHECK_THROWS_WITH(
      multiply({.after_product =
                    "wgmma.commit_group.sync.aligned; bar.sync 0; setp.eq.u32 p, t, 0; mov.u32 s, image;"
                    "@p st.shared.u32 [s], 5; bar.sync 0; fence.proxy.async;"
                    "wgmma.wait_group.sync.aligned 0;"}),
      Contains("was changed before the wait"));
  CHECK_THROWS_WITH(multiply({.after_product = "wgmma.commit_group.sync.aligned; mov.b32 d1, 0;"
                                               "wgmma.wait_group.sync.aligned 0;"}),
                    Contains("were written before the wait"));
}
