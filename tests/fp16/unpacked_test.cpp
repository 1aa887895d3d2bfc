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
      const auto result = round_pack<binary16>(unpack<binary16, UInt>(bits), {mode});
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
        {mode});
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

/// k * 2^-27 again: 2^13 - 1 rounds to the smallest normal number in any case.
TEST_CASE("tininess before rounding, and flushing of what is tiny") {
  const auto rounded = [](std::uint64_t k, const Attributes& attributes) {
    return round_pack<binary16>(Unpacked<std::uint64_t>{.negative = true, .exponent = -27, .significand = k},
                                attributes);
  };
  constexpr std::uint64_t min_normal = 1 << 13;
  constexpr Flags lost{.inexact = true, .underflow = true};
  CHECK(rounded(min_normal - 1, {.tininess = Tininess::before_rounding}) == Result<binary16>{0x8400, lost});
  CHECK(rounded(min_normal - 8, {.tininess = Tininess::before_rounding}) == Result<binary16>{0x83ff, {}});
  CHECK(rounded(min_normal - 1, {.flush_to_zero = true}) == Result<binary16>{0x8400, {.inexact = true}});
  CHECK(rounded(min_normal - 3, {.flush_to_zero = true}) == Result<binary16>{0x8000, lost});
  CHECK(rounded(min_normal - 8, {.flush_to_zero = true}) == Result<binary16>{0x8000, lost});
  CHECK(rounded(min_normal, {.flush_to_zero = true}) == Result<binary16>{0x8400, {}});
  CHECK(rounded(min_normal - 1, {.flush_to_zero = true, .tininess = Tininess::before_rounding}) ==
        Result<binary16>{0x8000, lost});
}

TEST_CASE("overflow by format, direction and saturation") {
  constexpr Flags overflow{.inexact = true, .overflow = true};
  const Unpacked<std::uint64_t> huge{.negative = true, .exponent = 200, .significand = 1};
  CHECK(round_pack<binary16>(huge) == Result<binary16>{0xfc00, overflow});
  CHECK(round_pack<binary16>(huge, {.saturate = true}) == Result<binary16>{0xfbff, overflow});
  CHECK(round_pack<e4m3>(huge) == Result<e4m3>{0xff, overflow});
  CHECK(round_pack<e4m3>(huge, {Rounding::toward_zero}) == Result<e4m3>{0xfe, overflow});
  CHECK(round_pack<e4m3_fnuz>(huge) == Result<e4m3_fnuz>{0x80, overflow});
  CHECK(round_pack<e4m3_fnuz>(huge, {.saturate = true}) == Result<e4m3_fnuz>{0xff, overflow});
  CHECK(round_pack<e2m1>(huge) == Result<e2m1>{0xf, overflow});
  CHECK(round_pack<e8m0>(huge) == Result<e8m0>{0xff, {.invalid = true}});
}

TEST_CASE("scales: one-bit significands round by the parity of the code, nothing is below 2^-127") {
  const auto rounded = [](int exponent, std::uint64_t significand) {
    return round_pack<e8m0>(
        Unpacked<std::uint64_t>{.negative = false, .exponent = exponent, .significand = significand});
  };
  CHECK(rounded(-1, 3) == Result<e8m0>{128, {.inexact = true}});  // 1.5 between codes 127 and 128
  CHECK(rounded(0, 3) == Result<e8m0>{128, {.inexact = true}});   // 3 between codes 128 and 129
  CHECK(rounded(-129, 5) == Result<e8m0>{0, {.inexact = true}});  // 1.25 * 2^-127
  CHECK(rounded(-128, 3) == Result<e8m0>{0, {.inexact = true}});  // 1.5 * 2^-127, a tie
  CHECK(rounded(-128, 1) == Result<e8m0>{0, {.inexact = true, .underflow = true}});
  CHECK(rounded(0, 0) == Result<e8m0>{0, {.inexact = true, .underflow = true}});
  CHECK(rounded(126, 3) == Result<e8m0>{254, {.inexact = true}});  // 1.5 * 2^127, a tie
  CHECK(rounded(125, 7) == Result<e8m0>{255, {.inexact = true, .overflow = true}});
}

TEST_CASE("NaNs follow the policy") {
  const auto policy = [](NanPolicy nan_policy) { return Attributes{.nan_policy = nan_policy}; };
  const Attributes nvidia = policy(NanPolicy::canonical_nvidia), riscv = policy(NanPolicy::canonical_riscv);
  CHECK(propagate_nan<binary16>({}, 0xfd01, 0x7e02) == Result<binary16>{0xff01, {.invalid = true}});
  CHECK(propagate_nan<binary16>(nvidia, 0xfd01) == Result<binary16>{0x7fff, {.invalid = true}});
  CHECK(propagate_nan<binary16>(riscv, 0xfe01) == Result<binary16>{0x7e00, {}});
  CHECK(invalid_operation<binary16>().bits == 0xfe00);
  CHECK(invalid_operation<binary16>(nvidia).bits == 0x7fff);
  CHECK(invalid_operation<binary16>(riscv).bits == 0x7e00);
  CHECK(invalid_operation<binary32>(nvidia).bits == 0x7fffffff);
  CHECK(invalid_operation<e5m2>(nvidia).bits == 0x7f);
  CHECK(invalid_operation<e4m3>().bits == 0xff);
  CHECK(invalid_operation<e4m3>(nvidia).bits == 0x7f);
  CHECK(invalid_operation<e4m3_fnuz>().bits == 0x80);
  CHECK(invalid_operation<e3m2>() == Result<e3m2>{0, {.invalid = true}});
}

}  // namespace
}  // namespace fp16
