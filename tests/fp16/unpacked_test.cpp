#include "fp16/unpacked.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>

#include "tests/oracle/agreement.h"

namespace fp16 {
namespace {

static_assert(std::is_same_v<Bits<binary16>, std::uint16_t>);
static_assert(std::is_same_v<Bits<binary32>, std::uint32_t>);
static_assert(std::is_same_v<Bits<binary64>, std::uint64_t>);

static_assert(sign_mask<binary16> == 0x8000);
static_assert(trailing_mask<binary16> == 0x03ff);
static_assert(infinity_bits<binary16> == 0x7c00);
static_assert(max_finite_bits<binary16> == 0x7bff);
static_assert(min_normal_bits<binary16> == 0x0400);
static_assert(quiet_bit<binary16> == 0x0200);
static_assert(default_nan_bits<binary16> == 0xfe00);
static_assert(default_nan_bits<binary32> == 0xffc00000);
static_assert(default_nan_bits<binary64> == 0xfff8000000000000);

TEST_CASE("every code belongs to exactly one class, and each class has the size its fields give") {
  int zeros = 0, subnormals = 0, normals = 0, infinities = 0, quiet = 0, signalling = 0;
  for (int code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    zeros += is_zero<binary16>(bits);
    subnormals += is_subnormal<binary16>(bits);
    normals += is_finite<binary16>(bits) && !is_zero<binary16>(bits) && !is_subnormal<binary16>(bits);
    infinities += is_infinite<binary16>(bits);
    quiet += is_nan<binary16>(bits) && !is_signalling_nan<binary16>(bits);
    signalling += is_signalling_nan<binary16>(bits);
  }
  CHECK(zeros == 2);
  CHECK(subnormals == 2 * 1023);
  CHECK(normals == 2 * 30 * 1024);
  CHECK(infinities == 2);
  CHECK(quiet == 2 * 512);
  CHECK(signalling == 2 * 511);
}

TEST_CASE("bit_width counts the bits of both halves of a 128-bit integer") {
  CHECK(bit_width(uint128{0}) == 0);
  for (int position = 0; position < 128; ++position) {
    CHECK(bit_width(uint128{1} << position) == position + 1);
    CHECK(bit_width((uint128{1} << position) | 1) == position + 1);
  }
}

template <typename UInt>
void check_that_packing_inverts_unpacking() {
  oracle::Comparison comparison("pack(unpack)");
  for (int code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    if (!is_finite<binary16>(bits)) continue;
    for (const Rounding mode : oracle::roundings) {
      const auto result = round_pack<binary16>(unpack<binary16, UInt>(bits), mode);
      comparison.equal(oracle::as_outcome(result), oracle::Outcome{.bits = bits}, "", {bits});
    }
  }
  comparison.finish(6 * 2 * 0x7c00);
}

TEST_CASE("packing what was unpacked gives every finite code back, without flags, in all directions") {
  check_that_packing_inverts_unpacking<std::uint64_t>();
  check_that_packing_inverts_unpacking<uint128>();
}

/// ±k * 2^-27 around the smallest normal, 2^-14, where tininess before and after rounding differ.
TEST_CASE("underflow means tiny after rounding and inexact") {
  const int min_normal = 1 << 13;
  const auto rounded = [](int k, bool negative, Rounding mode) {
    return round_pack<binary16>(
        Unpacked<std::uint64_t>{
            .negative = negative, .exponent = -27, .significand = static_cast<std::uint64_t>(k)},
        mode);
  };
  CHECK(rounded(min_normal - 1, false, Rounding::nearest_even) ==
        Result<binary16>{0x0400, {.inexact = true}});
  CHECK(rounded(min_normal - 2, false, Rounding::nearest_even) ==
        Result<binary16>{0x0400, {.inexact = true}});
  CHECK(rounded(min_normal - 3, false, Rounding::nearest_even) ==
        Result<binary16>{0x0400, {.inexact = true, .underflow = true}});
  CHECK(rounded(min_normal - 3, false, Rounding::toward_positive) ==
        Result<binary16>{0x0400, {.inexact = true}});
  CHECK(rounded(min_normal - 4, false, Rounding::toward_positive) ==
        Result<binary16>{0x0400, {.inexact = true, .underflow = true}});
  CHECK(rounded(min_normal - 3, true, Rounding::toward_negative) ==
        Result<binary16>{0x8400, {.inexact = true}});
  CHECK(rounded(min_normal - 1, true, Rounding::toward_positive) ==
        Result<binary16>{0x83ff, {.inexact = true, .underflow = true}});
  CHECK(rounded(min_normal - 8, false, Rounding::nearest_even) == Result<binary16>{0x03ff, {}});
}

}  // namespace
}  // namespace fp16
