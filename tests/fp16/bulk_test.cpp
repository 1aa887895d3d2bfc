#include "fp16/bulk.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "fp16/codec.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

/// 2^22 floats of every class (about half of them in the range of half), every half, every tie and its
/// neighbours.
std::vector<float> hard_floats() {
  std::vector<float> floats;
  oracle::HardFloats cases(31);
  oracle::RandomBits random(32);
  for (int i = 0; i < 1 << 21; ++i) {
    floats.push_back(std::bit_cast<float>(cases.next()));
    const std::uint32_t in_range = 0x32000000 + random.below(0x48000000 - 0x32000000);
    floats.push_back(std::bit_cast<float>(in_range | static_cast<std::uint32_t>(random.below(2)) << 31));
  }
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float value = half_bits_to_float(static_cast<std::uint16_t>(code));
    const float next = half_bits_to_float(static_cast<std::uint16_t>(code + 1));
    const float tie = (value + next) / 2;
    floats.insert(floats.end(), {value, tie, std::nextafter(tie, -1e9f), std::nextafter(tie, 1e9f)});
  }
  for (std::uint32_t payload = 1; payload < 1u << 23; payload += 1 + payload / 64) {
    floats.push_back(std::bit_cast<float>(0x7f800000 | payload));
    floats.push_back(std::bit_cast<float>(0xff800000 | payload));
  }
  return floats;
}

/// Written from the definitions in bulk.h, on the values.
RoundingCounts recount(std::span<const float> in) {
  RoundingCounts counts;
  for (const float before : in) {
    const double after = decode<binary16>(float_to_half_bits(before));
    const bool overflowed = std::isfinite(before) && std::isinf(after);
    const bool inexact = std::isfinite(after) && after != static_cast<double>(before);
    counts.overflowed += overflowed;
    counts.inexact += inexact;
    counts.exact += !overflowed && !inexact;
    counts.flushed += before != 0 && after == 0;
    counts.subnormal += after != 0 && std::abs(after) < 0x1p-14;
  }
  return counts;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

TEST_CASE("float to half: every path has the bits of the scalar conversion and counts what it did") {
  const std::vector<float> in = hard_floats();
  CHECK(in.size() >= 1u << 22);
  std::vector<std::uint16_t> expected(in.size());
  std::ranges::transform(in, expected.begin(), float_to_half_bits);
  const RoundingCounts expected_counts = recount(in);
  CHECK(expected_counts.flushed > 0);
  CHECK(expected_counts.overflowed > 0);

  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    std::vector<std::uint16_t> out(in.size());
    float_to_half(in, out, path);
    CHECK(out == expected);

    std::ranges::fill(out, 0x1234);
    RoundingCounts counts{.exact = 5};
    float_to_half(in, out, counts, path);
    CHECK(out == expected);
    RoundingCounts from_five{.exact = 5};
    CHECK(counts == (from_five += expected_counts));
  }
}

TEST_CASE("half to float: every path has the bits of the scalar conversion for all 65,536 halves") {
  std::vector<std::uint16_t> in(0x10000);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i);
  std::vector<float> expected(in.size());
  std::ranges::transform(in, expected.begin(), half_bits_to_float);
  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    std::vector<float> out(in.size());
    half_to_float(in, out, path);
    CHECK(same_bits(out, expected));
  }
}

TEST_CASE("any length and any start: only the span is written") {
  oracle::HardFloats cases(33);
  std::vector<float> floats(80);
  for (float& value : floats) value = std::bit_cast<float>(cases.next());
  std::vector<std::uint16_t> expected(floats.size());
  std::ranges::transform(floats, expected.begin(), float_to_half_bits);

  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    for (std::size_t start = 0; start < 9; ++start) {
      for (std::size_t length = 0; length < 70; ++length) {
        constexpr std::uint16_t untouched = 0x5aa5;
        std::vector<std::uint16_t> halves(floats.size(), untouched);
        float_to_half(std::span(floats).subspan(start, length), std::span(halves).subspan(start, length),
                      path);
        std::vector<float> back(floats.size(), -1.0f);
        half_to_float(std::span(expected).subspan(start, length), std::span(back).subspan(start, length),
                      path);
        bool right = true;
        for (std::size_t i = 0; i < halves.size(); ++i) {
          const bool inside = i >= start && i < start + length;
          const float widened = inside ? half_bits_to_float(expected[i]) : -1.0f;
          right &= halves[i] == (inside ? expected[i] : untouched);
          right &= std::bit_cast<std::uint32_t>(back[i]) == std::bit_cast<std::uint32_t>(widened);
        }
        CAPTURE(start);
        CAPTURE(length);
        CHECK(right);
      }
    }
  }
}

TEST_CASE("counts of values worked out by hand") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> in{0.0f,      -0.0f,           1.0f,     0x1p-24f, 0x1.8p-24f, 0x1p-25f,
                              -1e-30f,   0x1.000002p-25f, 65519.0f, 65520.0f, -1e30f,     infinity,
                              -infinity, std::nanf(""),   0.1f};
  std::vector<std::uint16_t> out(in.size());
  RoundingCounts counts;
  float_to_half(in, out, counts);
  // Exact: two zeros, 1, 2^-24, two infinities, NaN. Inexact: 1.5 * 2^-24, 2^-25, -1e-30, next after 2^-25,
  // 65519, 0.1.
  CHECK(counts == RoundingCounts{.exact = 7, .inexact = 6, .subnormal = 3, .flushed = 2, .overflowed = 2});
}

TEST_CASE("calls without a path give the same bits") {
  const std::vector<float> in{1.0f, 0.1f, 1e-7f, 1e6f, -3.0f};
  std::vector<std::uint16_t> out(in.size());
  float_to_half(in, out);
  CHECK(out == std::vector<std::uint16_t>{0x3c00, 0x2e66, 0x0002, 0x7c00, 0xc200});
  std::vector<float> back(in.size());
  half_to_float(out, back);
  CHECK(back ==
        std::vector<float>{1.0f, 0x1.998p-4f, 0x1p-23f, std::numeric_limits<float>::infinity(), -3.0f});
}

TEST_CASE("spans of different lengths are refused before anything is written") {
  const std::vector<float> floats(8, 1.0f);
  const std::vector<std::uint16_t> halves(8, 0x3c00);
  std::vector<std::uint16_t> short_out(7, 0);
  std::vector<float> long_out(9, 0.0f);
  RoundingCounts counts;
  CHECK_THROWS_WITH_AS(float_to_half(floats, short_out), "out: has 7 elements; must have as many as in, 8",
                       std::invalid_argument);
  CHECK_THROWS_AS(float_to_half(floats, short_out, counts), std::invalid_argument);
  CHECK_THROWS_AS(half_to_float(halves, long_out), std::invalid_argument);
  CHECK(short_out == std::vector<std::uint16_t>(7, 0));
  CHECK(counts == RoundingCounts{});
}

}  // namespace
}  // namespace fp16
