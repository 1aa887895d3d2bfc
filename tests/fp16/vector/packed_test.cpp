#include "fp16/packed.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// One bit at a time: bit b of code i is bit i * bits + b of the stream.
Bytes packed_bit_by_bit(const std::vector<std::uint64_t>& codes, int bits) {
  const auto width = static_cast<std::size_t>(bits);
  Bytes packed((codes.size() * width + 7) / 8);
  for (std::size_t bit = 0; bit < codes.size() * width; ++bit) {
    const std::uint64_t set = codes[bit / width] >> (bit % width) & 1;
    packed[bit / 8] = static_cast<std::uint8_t>(packed[bit / 8] | set << (bit % 8));
  }
  return packed;
}

template <typename Code>
Bytes packed_bit_by_bit(std::span<const Code> codes, int bits) {
  return packed_bit_by_bit(std::vector<std::uint64_t>(codes.begin(), codes.end()), bits);
}

/// An array that begins at any address, between bytes that nobody may change.
class Guarded {
 public:
  Guarded(std::size_t size, std::size_t offset)
      : bytes_(offset + size + 64, guard), offset_(offset), size_(size) {}

  std::span<std::uint8_t> span() { return std::span(bytes_).subspan(offset_, size_); }
  Bytes copy() { return {span().begin(), span().end()}; }
  bool is_intact() const {
    const auto is_guard = [](std::uint8_t byte) { return byte == guard; };
    const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(offset_ + size_);
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset_), is_guard) &&
           std::all_of(end, bytes_.end(), is_guard);
  }

 private:
  static constexpr std::uint8_t guard = 0xa5;
  Bytes bytes_;
  std::size_t offset_, size_;
};

/// All pairs of neighbours, more than once.
Bytes neighbouring_codes(int bits) {
  const int count = 1 << bits;
  Bytes codes;
  while (codes.size() < 5000) {
    for (int a = 0; a < count; ++a) {
      for (int b = 0; b < count; ++b)
        codes.insert(codes.end(), {static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b)});
    }
    codes.push_back(1);
  }
  return codes;
}

void check_packing(std::span<const std::uint8_t> codes, int bits, std::size_t offset,
                   const ArrayOptions& options) {
  const Bytes expected = packed_bit_by_bit(codes, bits);
  Guarded in(codes.size(), offset), packed(expected.size(), offset * 3 % 8),
      out(codes.size(), offset * 5 % 8);
  // What a byte has beyond its code is not packed.
  std::ranges::transform(codes, in.span().begin(),
                         [&](std::uint8_t code) { return static_cast<std::uint8_t>(code | 0x55 << bits); });
  pack(in.span(), packed.span(), bits, options);
  REQUIRE(packed.copy() == expected);
  REQUIRE(packed.is_intact());

  // What the last byte has beyond the last code is not unpacked.
  const int spare = static_cast<int>(8 * expected.size() - codes.size() * static_cast<std::size_t>(bits));
  if (spare > 0) packed.span().back() |= static_cast<std::uint8_t>(0xff << (8 - spare));
  unpack(packed.span(), out.span(), bits, options);
  REQUIRE(std::ranges::equal(out.span(), codes));
  REQUIRE(out.is_intact());
}

TEST_CASE("packed codes are those packed bit by bit: all pairs, lengths and addresses, on every path") {
  for (const int bits : {4, 6}) {
    const Bytes codes = neighbouring_codes(bits);
    for (const VectorPath path : available_vector_paths()) {
      CAPTURE(bits);
      CAPTURE(name_of(path));
      check_packing(codes, bits, 1, {.path = path, .threads = 1});
      check_packing(codes, bits, 0, {.path = path, .threads = 3});
      for (std::size_t size = 0; size <= 130; ++size) {
        for (std::size_t offset = 0; offset < 8; ++offset)
          check_packing(std::span(codes).subspan(37 * size, size), bits, offset, {.path = path});
      }
      for (const std::size_t size : {2047, 2048, 2049, 4099})
        check_packing(std::span(codes).first(size), bits, 3, {.path = path});
    }
  }
}

TEST_CASE("the first code is in the lowest bits, and what is left of the last byte is zero") {
  Bytes packed(2);
  pack(Bytes{0x1, 0x2, 0xf}, packed, 4);
  CHECK(packed == Bytes{0x21, 0x0f});
  packed.resize(3);
  pack(Bytes{0b000001, 0b100010, 0b001100}, packed, 6);
  CHECK(packed == Bytes{0b10'000001, 0b1100'1000, 0b00});
  static_assert(packed_bytes(0, 4) == 0 && packed_bytes(1, 4) == 1 && packed_bytes(3, 6) == 3);
  static_assert(packed_bytes(~std::size_t{0}, 6) == (~std::size_t{0} / 8) * 6 + 6);
}

/// Every class of floats, many of them near the format's numbers.
template <const Format& F>
std::vector<float> hard_floats(std::size_t count) {
  std::vector<float> floats;
  oracle::HardFloats cases(51);
  oracle::RandomBits random(52);
  const std::uint64_t mask = (std::uint64_t{1} << F.width()) - 1;
  while (floats.size() < count) {
    floats.push_back(std::bit_cast<float>(cases.next()));
    const auto value = static_cast<float>(decode<F>(static_cast<Bits<F>>(random.next() & mask)));
    const auto few = static_cast<std::uint32_t>(random.below(5)) - 2;
    floats.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + few));
  }
  floats.resize(count);
  return floats;
}

template <const Format& F>
void check_encoding(std::span<const float> in, const Attributes& attributes, ArrayOptions options) {
  std::vector<Bits<F>> codes(in.size());
  RoundingCounts expected_counts, counts;
  options.counts = &expected_counts;
  encode<F>(in, codes, attributes, options);
  const Bytes expected = packed_bit_by_bit(std::span<const Bits<F>>(codes), F.width());
  options.counts = &counts;
  Guarded packed(expected.size(), in.size() % 8);
  encode_packed<F>(in, packed.span(), attributes, options);
  REQUIRE(packed.copy() == expected);
  REQUIRE(packed.is_intact());
  REQUIRE(counts == expected_counts);
}

TEST_CASE(
    "encoding to packed codes is packing what encode gives, attributes, counts and random bits included") {
  constexpr std::size_t count = 5001;
  std::vector<std::uint32_t> bits_32(count);
  std::vector<std::uint64_t> bits_64(count);
  fill_bits({.key = 5}, 0, bits_32);
  for (std::size_t i = 0; i < count; ++i) bits_64[i] = bits_32[i] * 0x9E3779B97F4A7C15;
  for_each_format([&]<const Format & F>() {
    if constexpr (is_packable(F)) {
      CAPTURE(name_of(F));
      const std::vector<float> in = hard_floats<F>(count);
      for (const VectorPath path : available_vector_paths()) {
        CAPTURE(name_of(path));
        check_encoding<F>(in, {.saturate = true}, {.path = path, .threads = 2});
        check_encoding<F>(in, {Rounding::toward_negative}, {.path = path});
        check_encoding<F>(in, {.flush_to_zero = true, .denormals_are_zero = true}, {.path = path});
        check_encoding<F>(in, {Rounding::stochastic},
                          {.path = path, .threads = 2, .random_bits_32 = bits_32});
        check_encoding<F>(in, {Rounding::stochastic}, {.path = path, .random_bits_64 = bits_64});
        check_encoding<F>(in, {Rounding::stochastic},
                          {.path = path, .threads = 3, .random = PhiloxSequence{{.key = 6}, 3}});
        for (std::size_t size = 0; size < 40; ++size)
          check_encoding<F>(std::span(in).subspan(size, size), {}, {.path = path});
      }
    }
  });
}

template <const Format& F>
void check_decoding(std::span<const Bits<F>> codes, std::size_t offset, const ArrayOptions& options) {
  const Bytes expected_packed = packed_bit_by_bit(codes, F.width());
  Guarded packed(expected_packed.size(), offset);
  std::ranges::copy(expected_packed, packed.span().begin());
  std::vector<float> out(codes.size());
  decode_packed<F>(packed.span(), out, options);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint32_t expected = convert<binary32, F>(codes[i]).bits;
    REQUIRE(std::bit_cast<std::uint32_t>(out[i]) == expected);
  }
}

TEST_CASE("packed codes decode to their values: all codes, lengths and addresses, on every path") {
  for_each_format([]<const Format & F>() {
    if constexpr (is_packable(F)) {
      CAPTURE(name_of(F));
      std::vector<Bits<F>> codes;
      for (std::uint32_t code = 0; code < 1u << F.width(); ++code)
        codes.push_back(static_cast<Bits<F>>(code));
      while (codes.size() < 5000) codes.insert(codes.end(), codes.begin(), codes.begin() + 16);
      for (const VectorPath path : available_vector_paths()) {
        CAPTURE(name_of(path));
        check_decoding<F>(codes, 1, {.path = path, .threads = 2});
        for (std::size_t size = 0; size <= 130; ++size)
          check_decoding<F>(std::span(codes).subspan(size, size), size % 8, {.path = path});
      }
    }
  });
}

TEST_CASE(
    "packed arrays of another length, and other bits, are refused, and nothing is "
    "written") {
  Bytes bytes(64, 0x11), codes(32, 1);
  CHECK_THROWS_WITH_AS(pack(codes, std::span(bytes).first(15), 4),
                       "packed: has 15 bytes; must have 16, for 32 codes of 4 bits", std::invalid_argument);
  CHECK_THROWS_WITH_AS(unpack(std::span(bytes).first(25), codes, 6),
                       "packed: has 25 bytes; must have 24, for 32 codes of 6 bits", std::invalid_argument);
  CHECK_THROWS_WITH_AS(pack(codes, std::span(bytes).first(20), 5), "bits: 5 is not allowed; 4 or 6",
                       std::invalid_argument);
  CHECK_THROWS_AS(pack(codes, std::span(bytes).first(16), 4, {.threads = 0}), std::invalid_argument);
  const std::vector<float> floats(8, 1.0f);
  CHECK_THROWS_AS(encode_packed<e2m3>(floats, std::span(bytes).first(7)), std::invalid_argument);
  CHECK(bytes == Bytes(64, 0x11));
  pack(std::span(bytes).first(32), std::span(bytes).subspan(32, 16), 4);  // side by side
  CHECK(bytes[32] == 0x11);
}

}  // namespace
}  // namespace fp16
