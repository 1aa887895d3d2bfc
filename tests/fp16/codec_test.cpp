#include "fp16/codec.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/oracle/agreement.h"
#include "tests/oracle/compilers_half.h"
#include "tests/oracle/exact_half.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

static_assert(float_to_half_bits(1.0f) == 0x3c00);
static_assert(float_to_half_bits(65519.996f) == 0x7bff);
static_assert(float_to_half_bits(65520.0f) == 0x7c00);
static_assert(float_to_half_bits(-0x1p-25f) == 0x8000);
static_assert(float_to_half_bits(0x1.000002p-25f) == 0x0001);
static_assert(half_bits_to_float(0x0001) == 0x1p-24f);
static_assert(encode<binary16>(65520.0f).flags == Flags{.inexact = true, .overflow = true});
static_assert(encode<binary16>(65536.0, {Rounding::to_odd}).bits == 0x7bff);
static_assert(decode<binary32>(0x00000001) == 0x1p-149);
static_assert(convert<binary16, binary16>(0x7d00) == Result<binary16>{0x7f00, {.invalid = true}});

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
std::uint64_t bits_of(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

TEST_CASE("all 65,536 codes decode to their exact values") {
  oracle::Comparison exact("decode");
  oracle::Comparison special("decode of infinities and NaNs");
  for (std::uint64_t code = 0; code < 0x10000; ++code) {
    const auto half = static_cast<std::uint16_t>(code);
    const float narrow = half_bits_to_float(half);
    const double wide = decode<binary16>(half);
    if (is_finite<binary16>(half)) {
      const bool equal = oracle::exact_value(static_cast<double>(narrow)) == oracle::exact_value(half) &&
                         oracle::exact_value(wide) == oracle::exact_value(half) &&
                         std::signbit(narrow) == (half >= 0x8000) && std::signbit(wide) == (half >= 0x8000);
      exact.equal<std::uint64_t>(equal, true, "", {code});
      continue;
    }
    const std::uint64_t sign = code >> 15;
    const std::uint64_t payload = code & 0x3ff;
    const std::uint64_t quiet = payload != 0 ? 0x200 : 0;
    special.equal<std::uint64_t>(bits_of(narrow), sign << 31 | 0x7f800000 | (payload | quiet) << 13, "",
                                 {code});
    special.equal<std::uint64_t>(
        bits_of(wide), sign << 63 | std::uint64_t{0x7ff} << 52 | (payload | quiet) << 42, "", {code});
  }
  exact.finish(2 * 0x7c00);
  special.finish(2 * 2 * 0x400);
}

TEST_CASE("every half, every tie and the floats beside them, in all directions with flags") {
  oracle::Comparison comparison("float to half");
  for (std::uint16_t lower = 0; lower < 0x7c00; ++lower) {
    const double value = half_bits_to_float(lower);
    const double next = lower == 0x7bff ? 65536.0 : half_bits_to_float(lower + 1);
    for (const double center : {value, (value + next) / 2}) {
      const std::uint32_t bits = bits_of(static_cast<float>(center));
      for (const std::uint32_t candidate : {bits - (bits != 0), bits, bits + 1}) {
        for (const std::uint32_t signed_bits : {candidate, candidate | 0x80000000}) {
          comparison.equal_in_all_directions(oracle::from_binary32(signed_bits), {signed_bits},
                                             [&](const Attributes& attributes) {
                                               return convert<binary16, binary32>(signed_bits, attributes);
                                             });
        }
      }
    }
  }
  comparison.finish(std::uint64_t{0x7c00} * 2 * 3 * 2 * 6);
}

TEST_CASE("doubles beside the ties round once: a detour through float would see a tie") {
  oracle::Comparison comparison("double to half");
  for (std::uint16_t lower = 0; lower < 0x7c00; ++lower) {
    const double value = half_bits_to_float(lower);
    const double next = lower == 0x7bff ? 65536.0 : half_bits_to_float(lower + 1);
    const std::uint64_t tie = bits_of((value + next) / 2);
    const std::uint64_t sign = std::uint64_t{lower % 2u} << 63;
    for (const std::uint64_t magnitude : {tie - 1, tie, tie + 1, tie + (1 << 20)}) {
      comparison.equal_in_all_directions(oracle::from_binary64(sign | magnitude), {sign | magnitude},
                                         [&](const Attributes& attributes) {
                                           return convert<binary16, binary64>(sign | magnitude, attributes);
                                         });
    }
  }
  comparison.finish(std::uint64_t{0x7c00} * 4 * 6);

  const double witness = 1 + 0x1p-11 + 0x1p-40;
  CHECK(double_to_half_bits(witness) == 0x3c01);
  CHECK(float_to_half_bits(static_cast<float>(witness)) == 0x3c00);
}

TEST_CASE("boundary-weighted floats and doubles in all directions with flags, NaNs included") {
  constexpr int cases = 100'000;
  oracle::Comparison comparison("to half");
  oracle::HardFloats floats(1);
  oracle::HardDoubles doubles(2);
  oracle::HardHalves halves(3);
  oracle::RandomBits random(4);
  for (int i = 0; i < cases; ++i) {
    // Half of the operands are a half's neighbourhood, since most floats overflow or vanish.
    const std::uint32_t beside =
        bits_of(half_bits_to_float(halves.next())) + random.below(1 << 15) - (1 << 14);
    const std::uint32_t narrow = i % 2 == 0 ? floats.next() : beside;
    comparison.equal_in_all_directions(
        oracle::from_binary32(narrow), {narrow},
        [&](const Attributes& attributes) { return convert<binary16, binary32>(narrow, attributes); });
    const std::uint64_t wide =
        i % 2 == 0 ? doubles.next() : bits_of(static_cast<double>(std::bit_cast<float>(beside)));
    comparison.equal_in_all_directions(
        oracle::from_binary64(wide), {wide},
        [&](const Attributes& attributes) { return convert<binary16, binary64>(wide, attributes); });
  }
  comparison.finish(cases * 2 * 6);
}

TEST_CASE("one float of each 256 neighbours, against the compiler's own half") {
  oracle::Comparison comparison("float to half");
  oracle::RandomBits random(5);
  for (std::uint64_t block = 0; block < 1u << 24; ++block) {
    const auto bits = static_cast<std::uint32_t>(block << 8 | (random.next() & 0xff));
    const auto value = std::bit_cast<float>(bits);
    comparison.equal<std::uint64_t>(float_to_half_bits(value),
                                    std::bit_cast<std::uint16_t>(static_cast<oracle::CompilersHalf>(value)),
                                    "", {bits});
  }
  comparison.finish(1u << 24);
}

TEST_CASE("a NaN keeps its sign and the leading bits of its payload, and becomes quiet") {
  CHECK(convert<binary16, binary32>(0x7f800001) == Result<binary16>{0x7e00, {.invalid = true}});
  CHECK(convert<binary16, binary32>(0xffbfe000) == Result<binary16>{0xffff, {.invalid = true}});
  CHECK(convert<binary16, binary32>(0x7fd55fff) == Result<binary16>{0x7eaa, {}});
  CHECK(convert<binary16, binary64>(0x7ff0000000000001) == Result<binary16>{0x7e00, {.invalid = true}});
  CHECK(convert<binary64, binary32>(0xff800001) == Result<binary64>{0xfff8000020000000, {.invalid = true}});
  CHECK(convert<binary32, binary64>(0x7ff800002fffffff) == Result<binary32>{0x7fc00001, {}});
}

}  // namespace
}  // namespace fp16
